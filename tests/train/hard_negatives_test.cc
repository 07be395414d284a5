// Hard negatives for the rows of a file: what is written, in each format, and what is refused.
#include "qkv/hard_negatives.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/fields.h"
#include "core/random.h"
#include "core/to_size.h"
#include "data/examples/example_file.h"
#include "io/runs/run.h"
#include "io/runs/run_kinds.h"
#include "qkv/embedder_training.h"
#include "tests/support/bert_case.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/temp_dir.h"
#include "train/tasks/text_rows.h"

namespace qkv::testing {
namespace {

using RowsOfTexts = std::vector<std::vector<std::string>>;

RowsOfTexts read_rows(const std::string& path) {
  const ExampleFile file(path, {});
  std::vector<int64_t> numbers(to_size(file.rows()));
  std::iota(numbers.begin(), numbers.end(), 0);
  RowsOfTexts rows;
  for (ExampleRow& row : file.read(numbers)) rows.push_back(std::move(row.fields));
  return rows;
}

// Texts of the letters that the encoder knows, some of them in several rows, as anchor and as positive.
RowsOfTexts random_pairs(size_t count) {
  Random random(5, Stream::test);
  const auto text = [&] {
    std::string words;
    for (uint64_t i = 0; i < 1 + random.below(4); i++)
      words += std::string(i > 0, ' ') + static_cast<char>('a' + random.below(8));
    return words;
  };
  RowsOfTexts rows;
  while (rows.size() < count)
    if (std::string anchor = text(), positive = text(); anchor != positive) rows.push_back({anchor, positive});
  return rows;
}

class HardNegatives : public ::testing::Test {
 protected:
  HardNegatives() {
    import_model(BertCase("sentence").path(), run(), listed_tokens());
    embedder.emplace(run());
  }
  std::string run() const { return directory / "run"; }
  std::string file(const std::string& name) const { return directory / name; }
  std::string write(const std::string& name, const std::string& text) const {
    spill(file(name), text);
    return file(name);
  }
  std::string write(const std::string& name, const RowsOfTexts& rows) const {
    std::string text;
    for (const std::vector<std::string>& row : rows) text += fmt::format("{}\n", fmt::join(row, "\t"));
    return write(name, text);
  }
  HardNegativeReport mine(const std::string& rows, const std::string& out, const HardNegativeOptions& options = {},
                          const EmbedOptions& embed = {}) {
    messages.clear();
    HardNegativeObserver observer;
    observer.on_message = [&](const std::string& line) { messages.push_back(line); };
    return mine_hard_negatives(*embedder, {.rows = rows, .out = out}, options, embed, observer);
  }

  TempDir directory;
  std::optional<Embedder> embedder;
  std::vector<std::string> messages;
};

// The products of the vectors of a text and others.
std::vector<double> similarities(const Embedder& embedder, const std::string& text,
                                 const std::vector<std::string>& others, bool normalize) {
  const Embeddings a = embedder.embed({text}, {.normalize = normalize}),
                   b = embedder.embed(others, {.normalize = normalize});
  std::vector<double> found;
  for (size_t i = 0; i < others.size(); i++) {
    double sum = 0;
    for (size_t k = 0; k < a.values.size(); k++)
      sum += static_cast<double>(a.values[k]) * static_cast<double>(b.values[i * a.values.size() + k]);
    found.push_back(sum);
  }
  return found;
}

constexpr double kMargin = 0.01;  // with which some rows, but not all, have negatives

// A sum of 12 products of float32 numbers with norms of at most `norm`, and the limit, have at most 13 roundings.
double rounding(double norm) { return 13 * 0x1p-24 * norm * norm; }

TEST_F(HardNegatives, AreTheMostSimilarTextsThatDoNotBelongToTheAnchor) {
  const RowsOfTexts pairs = random_pairs(150);
  for (const bool normalize : {true, false}) {
    const HardNegativeReport report =
        mine(write("pairs.tsv", pairs), file("out.jsonl"), {.relative_margin = kMargin}, {.normalize = normalize});
    EXPECT_EQ(mine(file("pairs.tsv"), file("default.jsonl"), {.relative_margin = kMargin}).written > 0, true);
    EXPECT_EQ(slurp(file("out.jsonl")) == slurp(file("default.jsonl")), normalize);
    const RowsOfTexts rows = read_rows(file("out.jsonl"));
    EXPECT_EQ(report.rows, 150);
    EXPECT_EQ(report.written, std::ssize(rows));
    std::set<std::string> anchors, positives;
    for (const auto& pair : pairs) anchors.insert(pair[0]), positives.insert(pair[1]);
    const std::vector<std::string> candidates(positives.begin(), positives.end());
    EXPECT_EQ(report.candidates, std::ssize(candidates));
    anchors.insert(positives.begin(), positives.end());
    EXPECT_EQ(report.texts, std::ssize(anchors));
    double of_positives = 0, of_negatives = 0;
    size_t pair = 0;
    for (const std::vector<std::string>& row : rows) {
      ASSERT_EQ(row.size(), 5U);
      while (pairs[pair] != std::vector<std::string>(row.begin(), row.begin() + 2)) pair++;  // rows keep their order
      const std::vector<double> all = similarities(*embedder, row[0], candidates, normalize);
      const double positive = similarities(*embedder, row[0], {row[1]}, normalize)[0];
      const double limit = positive - kMargin * std::abs(positive), error = rounding(normalize ? 1 : 10);
      const auto belongs = [&](const std::string& text) {
        return text == row[0] || std::ranges::any_of(pairs, [&](const auto& other) {
                 return (other[0] == row[0] && other[1] == text) || (other[1] == row[0] && other[0] == text);
               });
      };
      const auto similarity = [&](const std::string& text) {
        return all[to_size(std::ranges::lower_bound(candidates, text) - candidates.begin())];
      };
      for (size_t i = 2; i < 5; i++) {
        EXPECT_TRUE(positives.contains(row[i]) && !belongs(row[i])) << row[0] << " and " << row[i];
        EXPECT_LE(similarity(row[i]), limit + error);
        of_negatives += similarity(row[i]);
      }
      of_positives += positive;
      EXPECT_EQ(std::set<std::string>(row.begin() + 2, row.end()).size(), 3U);
      for (const std::string& text : candidates) {  // none that is left out is more similar
        if (belongs(text) || std::ranges::find(row, text) != row.end() || similarity(text) >= limit - error) continue;
        EXPECT_LE(similarity(text), similarity(row[4]) + error);
      }
    }
    const auto count = static_cast<double>(rows.size());
    EXPECT_NEAR(report.positive_similarity, of_positives / count, rounding(normalize ? 1 : 10));
    EXPECT_NEAR(report.negative_similarity, of_negatives / count / 3, rounding(normalize ? 1 : 10));
    EXPECT_LT(report.written, report.rows);
    EXPECT_EQ(messages.size(), 3U);
  }
}

TEST_F(HardNegatives, EveryFormatHasTheSameRows) {
  write("pairs.tsv", random_pairs(60));
  for (const char* name : {"out.csv", "out.tsv", "out.jsonl"}) mine(file("pairs.tsv"), file(name));
  EXPECT_EQ(read_rows(file("out.csv")), read_rows(file("out.tsv")));
  EXPECT_EQ(read_rows(file("out.csv")), read_rows(file("out.jsonl")));
  EXPECT_EQ(slurp(file("out.tsv")).substr(0, 49), "anchor\tpositive\tnegative_1\tnegative_2\tnegative_3\n");
}

TEST_F(HardNegatives, TheNumberOfThreadsChangesNoByte) {
  write("pairs.tsv", random_pairs(300));
  for (const int count : {1, 3})
    with_threads(count,
                 [&] { return mine(file("pairs.tsv"), file(fmt::format("{}.csv", count)), {.sample_from = 5}); });
  EXPECT_EQ(slurp(file("1.csv")), slurp(file("3.csv")));
}

TEST_F(HardNegatives, FollowThoseThatARowHas) {
  const std::string rows = write("rows.tsv", "a b\tc d\te\tf\na\tb\tc d\te f\n");
  const HardNegativeReport report = mine(rows, file("out.csv"), {.negatives_per_row = 1, .relative_margin = -10});
  EXPECT_EQ(report.written, 1);  // the other candidate of the second row is its negative already
  EXPECT_EQ(slurp(file("out.csv")), "anchor,positive,negative_1,negative_2,negative_3\na b,c d,e,f,b\n");
  EXPECT_EQ(messages, (std::vector<std::string>{
                          rows + ": columns 1, 2, 3, 4 (no header)",
                          rows + ": 1 of 2 rows are dropped: they have fewer than 1 negative within the margin",
                          messages.back()}));
  expect_contains(messages.back(), file("out.csv") + ": 1 rows with 1 negative each, of 2 different positives; mean ");
}

// Numbers in the last column are texts there, because its name says so.
TEST_F(HardNegatives, TrainingReadsTheRows) {
  RowsOfTexts pairs;
  for (int64_t i = 0; i < 30; i++) pairs.push_back({fmt::format("{}", i), fmt::format("{}", 100 + i)});
  import_model(BertCase("sentence").path(), file("letters"));
  embedder.emplace(file("letters"));
  mine(write("pairs.tsv", pairs), file("numbers.csv"), {.relative_margin = -10});
  EXPECT_EQ(find_columns(ExampleFile(file("numbers.csv"), {})), (RowColumns{5, false}));
  embedder.emplace(run());
  mine(write("pairs.tsv", random_pairs(60)), file("rows.csv"));
  EmbedderRecipe recipe = embedder_fine_tuning(run());
  recipe.training.max_steps = 2;
  recipe.embedder.dev_share = 0.3;
  std::vector<std::string> lines;
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { lines.push_back(line); };
  EXPECT_TRUE(train_embedder({.train = file("rows.csv"), .init = run()}, recipe, file("trained"), observer));
  expect_contains(fmt::format("{}", fmt::join(lines, "\n")), "rows of 5 texts");
}

TEST_F(HardNegatives, ErrorsNameTheLineOrTheOption) {
  const auto error = [&](const std::string& text, const HardNegativeOptions& options = {},
                         const EmbedOptions& embed = {}, const std::string& out = "out.csv") {
    const std::string rows = write("rows.tsv", text);
    const std::string message = error_of([&] { mine(rows, file(out), options, embed); });
    EXPECT_FALSE(std::filesystem::exists(file(out)));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file("")), {}), 2) << message;  // no temporary file
    return message;
  };
  const std::string rows = file("rows.tsv"), two = "a\tb\nc\td\n";
  EXPECT_EQ(error("a\tb\nc\t \n"), rows + ":2: column 2 is empty");
  EXPECT_EQ(error("a\tb\nc\n"), rows + ":2: expected 2 columns as in the first line (found 1)");
  EXPECT_EQ(error("a\nb\n"), rows + ": expected rows of an anchor, a positive and perhaps negatives (has one column)");
  EXPECT_EQ(error("sentence1\tsentence2\tscore\na\tb\t1\n"),
            rows +
                ": column \"score\" has scores, expected rows of an anchor, a positive and perhaps negatives: choose "
                "these (columns)");
  EXPECT_EQ(error("a\tb\tb\n"), rows + ":1: column 3 is equal to column 2, its positive");
  EXPECT_EQ(error(two, {.negatives_per_row = 2}),
            rows + ": no row has 2 negatives among the 2 different positives (relative_margin is 0.05)");
  EXPECT_EQ(
      error("a\tb\nc\td\xFF\n"),
      rows + ":2: byte 4 of the line is not valid UTF-8 (Latin-1? \"iconv -f latin1 -t utf-8 FILE\" makes it so)");
  EXPECT_EQ(error(two, {}, {}, "out.txt"),
            file("out.txt") + ": the name of a file of rows to write must end in .csv, .tsv or .jsonl");
  EXPECT_EQ(error(two, {.negatives_per_row = 0}), "negatives_per_row must be between 1 and 100 (is 0)");
  EXPECT_EQ(error(two, {.relative_margin = 1.5}), "relative_margin must be between -10 and 1 (is 1.5)");
  EXPECT_EQ(error(two, {.sample_from = 2}), "sample_from must be 0 or at least negatives_per_row, 3 (is 2)");
  EXPECT_EQ(error(two, {}, {.max_length = 17}), "max_length must be between 3 and 16 (is 17)");
  EXPECT_EQ(error_of([&] {
              mine_hard_negatives(*embedder, {.rows = rows, .columns = {"1", "1"}, .out = file("out.csv")});
            }),
            "columns must be different columns (names \"1\" twice)");
  EXPECT_EQ(error_of([&] { mine(rows, file("none/out.csv")); }),
            file("none/out.csv") + ": cannot be written: No such file or directory");
}

TEST_F(HardNegatives, ATextThatTheEmbedderRefusesIsNamedByItsLine) {
  const std::string rows = write("rows.tsv", "a\tb\nc\td\ne\tf\nz\ta\nc\ty\n");
  EXPECT_EQ(mine(rows, file("out.csv"), {.negatives_per_row = 1, .relative_margin = -10}).written, 5);
  const RunDirectory files(run());
  EmbeddingConfig config = load_run<EncoderRun>(run()).embedding;
  config.unknown = "";
  write_fields(files.embedding(), config);
  embedder.emplace(run());
  EXPECT_EQ(error_of([&] { mine(rows, file("out.csv")); }),
            rows + ":5: tokenizer: \"y\" is not in the vocabulary, which has no unknown token");
}

TEST_F(HardNegatives, TruncatedTextsAreCounted) {
  const std::string rows = write("long.tsv", "a\tb\na b c d e f g h a b c d e f g h\tc\nd\te\n");
  const HardNegativeReport report = mine(rows, file("out.csv"), {.negatives_per_row = 1, .relative_margin = -10});
  EXPECT_EQ(report.cut, 1);
  EXPECT_EQ(messages[1], rows + ": 1 of 6 texts are truncated to 14 tokens");
}

TEST_F(HardNegatives, ACallbackThatThrowsLeavesNoFile) {
  write("pairs.tsv", random_pairs(40));
  for (const HardNegativeStep stop : {HardNegativeStep::embed, HardNegativeStep::search}) {
    HardNegativeObserver observer;
    observer.on_progress = [&](HardNegativeStep step, int64_t) {
      if (step == stop) throw Error("stopped");
    };
    EXPECT_EQ(error_of([&] {
                mine_hard_negatives(*embedder, {.rows = file("pairs.tsv"), .out = file("out.csv")}, {}, {}, observer);
              }),
              "stopped");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file("")), {}), 2);
  }
}

}  // namespace
}  // namespace qkv::testing
