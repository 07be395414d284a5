// Hard negatives for the rows of a file: reads and numbers the texts, embeds them, and writes what the search finds.
#include "qkv/hard_negatives.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "data/examples/example_file.h"
#include "data/examples/example_writer.h"
#include "io/atomic_file.h"
#include "train/negatives/negative_search.h"
#include "train/tasks/text_rows.h"
#include "train/text_start.h"

namespace qkv {
namespace {

constexpr int64_t kTextsAtOnce = 512;  // that are embedded between two calls of on_progress

// Opens a file of anchors, positives and perhaps negatives.
TextRows open_rows(const HardNegativeFiles& files, const HardNegativeObserver& observer) {
  check_columns(files.columns, "columns");
  auto file = std::make_shared<const ExampleFile>(files.rows, files.columns);
  observer.on_message(describe_columns(*file));
  const RowColumns columns = find_columns(*file);
  if (columns.has_score)
    fail("{}: {} has scores, expected rows of an anchor, a positive and perhaps negatives: choose these (columns)",
         files.rows, file->name_of_field(to_size(file->fields()) - 1));
  if (columns.texts < 2)
    fail("{}: expected rows of an anchor, a positive and perhaps negatives (has one column)", files.rows);
  std::vector<int64_t> numbers = numbers_without(file->rows(), {});
  return {std::move(file), std::move(numbers), columns};
}

// The rows of a file, and the numbers of their texts: first those of the positives, then those of the other anchors,
// then those of the other negatives, each in the order of the rows. Equal texts have one number.
class NumberedRows {
 public:
  explicit NumberedRows(const TextRows& file)
      : file_(file), texts_(file.read(file.numbers())), columns_(file.columns().texts), numbers_(texts_.texts.size()) {
    file.check_negatives(texts_);
    std::unordered_map<std::string_view, int32_t> number_of;
    number_column(1, number_of);
    candidates_ = std::ssize(first_);
    number_column(0, number_of);
    embedded_ = std::ssize(first_);
    for (int64_t column = 2; column < columns_; column++) number_column(column, number_of);
  }

  int64_t size() const { return std::ssize(texts_.lines); }
  int64_t columns() const { return columns_; }
  int64_t candidates() const { return candidates_; }
  int64_t embedded() const { return embedded_; }  // anchors and positives
  const std::string& text(int32_t number) const { return texts_.texts[first_[to_size(number)]]; }
  const std::string& text(int64_t row, int64_t column) const { return texts_.texts[to_size(column * size() + row)]; }
  const std::string& path() const { return file_.path(); }
  std::string place(int64_t row) const { return file_.place(texts_.lines[to_size(row)]); }
  // Return the first row and column that have a text.
  int64_t row_of(int32_t number) const { return static_cast<int64_t>(first_[to_size(number)]) % size(); }
  int64_t column_of(int32_t number) const { return static_cast<int64_t>(first_[to_size(number)]) / size(); }

  NegativeRows for_search() const {
    const auto column = [&](int64_t j) { return numbers_.begin() + j * size(); };
    NegativeRows rows{candidates_, {column(0), column(1)}, {column(1), column(2)}};
    if (columns_ > 2) rows.given.resize(to_size(size()));
    for (size_t i = 0; i < rows.given.size(); i++)
      for (int64_t j = 2; j < columns_; j++) rows.given[i].push_back(column(j)[static_cast<std::ptrdiff_t>(i)]);
    return rows;
  }

 private:
  void number_column(int64_t column, std::unordered_map<std::string_view, int32_t>& number_of) {
    for (size_t i = to_size(column * size()); i < to_size((column + 1) * size()); i++) {
      const auto [entry, is_new] = number_of.emplace(texts_.texts[i], static_cast<int32_t>(first_.size()));
      if (is_new) first_.push_back(i);
      numbers_[i] = entry->second;
    }
  }

  const TextRows& file_;
  const RowTexts texts_;
  const int64_t columns_;
  std::vector<int32_t> numbers_;  // of all texts
  std::vector<size_t> first_;     // of each number, its first text
  int64_t candidates_ = 0, embedded_ = 0;
};

// Throws the error of the first of these texts that the embedder refuses alone, with its line. In the message, text 1
// is the anchor.
void fail_at_text(const Embedder& embedder, const NumberedRows& rows, int64_t begin, int64_t end,
                  EmbedOptions options) {
  for (auto number = static_cast<int32_t>(begin); number < end; number++) {
    options.first_number = rows.column_of(number) + 1;
    try {
      embedder.embed({rows.text(number)}, options);
    } catch (const Error& error) {
      fail("{}: {}", rows.place(rows.row_of(number)), error.what());
    }
  }
}

// Returns the vectors of all anchors and positives, [embedded, width], and reports the number of truncated texts.
std::vector<float> embed_all(const Embedder& embedder, const NumberedRows& rows, const EmbedOptions& options,
                             const HardNegativeObserver& observer, HardNegativeReport& report) {
  std::vector<float> vectors;
  vectors.reserve(to_size(rows.embedded() * embedder.width()));
  std::vector<std::string> texts;
  for (int64_t begin = 0; begin < rows.embedded(); begin += kTextsAtOnce) {
    const int64_t end = std::min(rows.embedded(), begin + kTextsAtOnce);
    texts.clear();
    for (auto number = static_cast<int32_t>(begin); number < end; number++) texts.push_back(rows.text(number));
    try {
      const Embeddings found = embedder.embed(texts, options);
      vectors.insert(vectors.end(), found.values.begin(), found.values.end());
      report.cut += found.cut;
    } catch (const Error&) {
      fail_at_text(embedder, rows, begin, end, options);
      throw;
    }
    observer.on_progress(HardNegativeStep::embed, end - begin);
  }
  if (report.cut > 0)
    observer.on_message(fmt::format("{}: {} of {} texts are truncated to {} tokens", rows.path(), report.cut,
                                    report.texts, options.max_length.value_or(embedder.max_length())));
  return vectors;
}

std::vector<std::string> names_of_columns(int64_t texts) {
  std::vector<std::string> names = {"anchor", "positive"};
  for (int64_t i = 1; i <= texts - 2; i++) names.push_back(fmt::format("negative_{}", i));
  return names;
}

// Writes the rows that have negatives, and fills in the report.
void write_rows(const NumberedRows& rows, const FoundNegatives& found, const ExampleWriter& writer, AtomicFile& file,
                HardNegativeReport& report) {
  constexpr size_t kBytes = 1 << 16;  // written at once
  const int64_t n = std::ssize(found.texts) / rows.size();
  std::string lines = writer.header();
  for (int64_t row = 0; row < rows.size(); row++) {
    const auto negatives = std::span(found.texts).subspan(to_size(row * n), to_size(n));
    if (negatives.front() < 0) continue;
    std::vector<std::string_view> texts;
    for (int64_t column = 0; column < rows.columns(); column++) texts.emplace_back(rows.text(row, column));
    for (const int32_t negative : negatives) texts.emplace_back(rows.text(negative));
    lines += writer.line(texts, rows.place(row));
    if (lines.size() >= kBytes) {
      file.write(lines);
      lines.clear();
    }
    report.written++;
    report.positive_similarity += static_cast<double>(found.positives[to_size(row)]);
    for (int64_t i = 0; i < n; i++)
      report.negative_similarity += static_cast<double>(found.similarities[to_size(row * n + i)]);
  }
  file.write(lines);
  if (report.written == 0) return;
  report.positive_similarity /= static_cast<double>(report.written);
  report.negative_similarity /= static_cast<double>(report.written * n);
}

std::string wanted(const HardNegativeOptions& options) {
  return fmt::format("{} negative{}", options.negatives_per_row, options.negatives_per_row == 1 ? "" : "s");
}

void expect_negatives(const NumberedRows& rows, const HardNegativeOptions& options, const HardNegativeReport& report) {
  if (report.written == 0)
    fail("{}: no row has {} among the {} different positives (relative_margin is {:g})", rows.path(), wanted(options),
         report.candidates, options.relative_margin);
}

// Reports the numbers of rows, and how similar their texts are.
void report_rows(const HardNegativeFiles& files, const HardNegativeOptions& options, const HardNegativeReport& report,
                 const HardNegativeObserver& observer) {
  if (const int64_t dropped = report.rows - report.written; dropped > 0)
    observer.on_message(fmt::format("{}: {} of {} rows are dropped: they have fewer than {} within the margin",
                                    files.rows, dropped, report.rows, wanted(options)));
  observer.on_message(fmt::format(
      "{}: {} rows with {} each, of {} different positives; mean similarity to the anchor: positives {:.4f}, negatives "
      "{:.4f}",
      files.out, report.written, wanted(options), report.candidates, report.positive_similarity,
      report.negative_similarity));
}

}  // namespace

void check(const HardNegativeOptions& options) {
  check_ranges(options);
  if (options.sample_from > 0 && options.sample_from < options.negatives_per_row)
    fail("sample_from must be 0 or at least negatives_per_row, {} (is {})", options.negatives_per_row,
         options.sample_from);
}

HardNegativeReport mine_hard_negatives(const Embedder& embedder, const HardNegativeFiles& files,
                                       const HardNegativeOptions& options, const EmbedOptions& embed_options,
                                       const HardNegativeObserver& observer) {
  check(options);
  if (std::error_code error; std::filesystem::equivalent(files.rows, files.out, error))
    fail("{}: is the file of the rows; expected another one for those with negatives", files.out);
  EmbedOptions embed = embed_options;
  embed.normalize = embed.normalize.value_or(true);
  embedder.embed({}, embed);  // checks the options
  const TextRows file = open_rows(files, observer);
  const ExampleWriter writer(files.out, names_of_columns(file.columns().texts + options.negatives_per_row));
  const NumberedRows rows(file);
  AtomicFile out(files.out);
  HardNegativeReport report{rows.size(), 0, rows.embedded(), rows.candidates()};
  const std::vector<float> vectors = embed_all(embedder, rows, embed, observer, report);
  const FoundNegatives found =
      find_negatives(rows.for_search(), {vectors.data(), rows.embedded(), embedder.width()}, options,
                     [&](int64_t searched) { observer.on_progress(HardNegativeStep::search, searched); });
  write_rows(rows, found, writer, out, report);
  expect_negatives(rows, options, report);
  out.commit();
  report_rows(files, options, report, observer);
  return report;
}

}  // namespace qkv
