// An embedder learns which texts belong together with each loss; its run embeds texts, can be resumed, and what cannot
// be trained is refused.
#include "qkv/embedder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "data/examples/example_file.h"
#include "eval/number_scores.h"
#include "io/runs/run.h"
#include "qkv/embedder_training.h"
#include "qkv/runs.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "tests/support/npz_writer.h"
#include "tests/train/training_cases.h"
#include "train/tasks/text_rows.h"
#include "train/text_start.h"

namespace qkv::testing {
namespace {

constexpr int64_t kWords = 12;

std::string word(int64_t i) { return std::string(3, static_cast<char>('a' + i % kWords)); }

// The similarity of two words, which are places on a circle.
double closeness(int64_t i, int64_t j) {
  return std::cos(2 * std::numbers::pi * static_cast<double>(i - j) / static_cast<double>(kWords));
}

// Rows for training and evaluation, whose words an untrained encoder cannot relate.
std::string rows_of(const std::function<std::string(int64_t, int64_t)>& row) {
  std::string text;
  for (int64_t i = 0; i < kWords; i++)
    for (int64_t j = 0; j < kWords; j++)
      if (i != j) text += row(i, j);
  return text;
}
std::string scored_rows() {
  return rows_of([](int64_t i, int64_t j) { return fmt::format("{},{},{:.3f}\n", word(i), word(j), closeness(i, j)); });
}

// Each word belongs to the one that is at the other end of the circle.
std::string pairs() {
  std::string text;
  for (int64_t i = 0; i < kWords; i++) text += fmt::format("{},{}\n", word(i), word(i + kWords / 2));
  return text;
}

// Files of rows, and an encoder that was trained for a step.
class EmbedderTraining : public ::testing::Test {
 protected:
  EmbedderTraining() : init(directory / "init") {
    std::string text;
    for (int64_t i = 0; i < 20 * kWords; i++) text += fmt::format("{} {}\n", word(i), word(i * 7));
    write("words.txt", text);
    write_encoder(init, R"({"vocab_size": 40})");
    write("scored.csv", scored_rows());
    write("pairs.csv", pairs());
  }

  std::string write(const std::string& name, const std::string& text) const {
    spill(directory / name, text);
    return directory / name;
  }
  std::string file(const std::string& name) const { return directory / name; }

  void write_encoder(const std::string& out, const std::string& json) const {
    EncoderRecipe recipe = encoder_preset("encoder-tiny");
    merge_recipe_json(recipe, kSmallEncoder, "");
    merge_recipe_json(recipe, R"({"d_model": 24, "ffn": 32, "max_steps": 1, "ema_decay": 0, "average": 0})", "");
    merge_recipe_json(recipe, json, "");
    train_encoder({{file("words.txt")}}, recipe, out, {});
  }

  static constexpr const char* kRecipe =
      R"({"learning_rate": 0.005, "warmup_steps": 5, "max_epochs": 0, "max_steps": 150, "eval_every": 0,
      "examples": 24, "batch_tokens": 64, "dropout": 0, "schedule": "constant"})";

  EmbedderRecipe recipe_of(const std::string& json, const std::string& run) const {
    EmbedderRecipe recipe = embedder_fine_tuning(run);
    merge_recipe_json(recipe, kRecipe, "");
    merge_recipe_json(recipe, json, "");
    return recipe;
  }

  using Measures = std::map<std::string, double>;

  // Trains and returns the measures of the last evaluation.
  Measures train(EmbedderFiles files, const std::string& json, const std::string& out,
                 const TrainingObserver& given = {}) const {
    Measures measures;
    TrainingObserver observer = given;
    observer.on_evaluation = [&](const EvaluationReport& report) {
      for (const auto& measure : report.candidates.front().measures) measures[measure.name] = measure.value;
    };
    if (files.init.empty()) files.init = init;
    train_embedder(files, recipe_of(json, files.init), out, observer);
    return measures;
  }
  std::vector<StepReport> steps(const EmbedderFiles& files, const std::string& json, const std::string& out,
                                size_t stop = 0) const {
    std::vector<StepReport> found;
    TrainingObserver observer;
    observer.on_step = [&](const StepReport& step) { found.push_back(step); };
    observer.should_stop = [&] { return found.size() == stop; };
    train(files, json, out, observer);
    return found;
  }
  EmbedderFiles scored() const { return {.train = file("scored.csv"), .dev = file("scored.csv")}; }

  TempDir directory;
  std::string init;
};

constexpr const char* kUntrained = R"({"learning_rate": 0, "max_steps": 1})";

TEST_F(EmbedderTraining, LossesOfScoresOrderPairs) {
  EXPECT_LT(train(scored(), kUntrained, file("before"))["spearman"], 0.5);
  EXPECT_GT(train(scored(), "{}", file("cosent"))["spearman"], 0.9);
  EXPECT_GT(train(scored(), R"({"loss": "cosine"})", file("cosine"))["spearman"], 0.9);
  const RunDirectory run(file("cosine"));
  const auto config = read_fields<EmbedderConfig>(run, run.embedder());
  EXPECT_EQ(std::pair(config.score_min, config.score_max), std::pair(-1.0, 0.866));  // of the data
}

// The run gives the vectors that were measured.
TEST_F(EmbedderTraining, TheRunHasTheMeasuredVectors) {
  const std::string json = R"({"dense": 10, "pooling": "mean_sqrt_len", "normalize": "on", "matryoshka": [4, 10],
      "max_steps": 40})";
  const Measures measures = train(scored(), json, file("run"));
  const Embedder embedder(file("run"));
  ASSERT_EQ(embedder.width(), 10);
  const auto correlation = [&](int64_t width) {
    std::vector<double> found, scores;
    for (int64_t i = 0; i < kWords; i++)
      for (int64_t j = 0; j < kWords; j++) {
        if (i == j) continue;
        const Embeddings v = embedder.embed({word(i), word(j)});
        double ab = 0, aa = 0, bb = 0;
        for (int64_t k = 0; k < width; k++) {
          const auto a = static_cast<double>(v.values[to_size(k)]), b = static_cast<double>(v.values[to_size(10 + k)]);
          ab += a * b, aa += a * a, bb += b * b;
        }
        found.push_back(ab / std::sqrt(aa * bb));
        scores.push_back(std::stod(fmt::format("{:.3f}", closeness(i, j))));
      }
    return spearman(found, scores);
  };
  EXPECT_NEAR(measures.at("spearman"), correlation(10), 2e-3);  // similar numbers may change places
  EXPECT_NEAR(measures.at("spearman (4)"), correlation(4), 2e-3);
  EXPECT_GT(measures.at("spearman (4)"), 0.8);
}

TEST_F(EmbedderTraining, PairsFindEachOther) {
  const EmbedderFiles files{.train = file("pairs.csv"), .dev = file("pairs.csv")};
  EXPECT_LT(train(files, kUntrained, file("before"))["MRR@10"], 0.8);
  for (const char* json :
       {R"({"examples": 12})", R"({"symmetric": true, "learn_temperature": true, "examples": 12})"}) {
    std::filesystem::remove_all(file("run"));
    const Measures measures = train(files, json, file("run"));
    EXPECT_GT(measures.at("MRR@10"), 0.99) << json;
    EXPECT_GT(measures.at("recall@1"), 0.99) << json;
  }
}

TEST_F(EmbedderTraining, NegativesAndMarginsAreLearned) {
  const EmbedderFiles dev{.train = write("triplets.csv", rows_of([](int64_t i, int64_t j) {
                                           const bool is_positive = word(j) == word(i + kWords / 2);
                                           return fmt::format("{},{},{}\n", word(i), word(i + kWords / 2),
                                                              word(is_positive ? i + 1 : j));
                                         })),
                          .dev = file("pairs.csv")};
  EXPECT_GT(train(dev, "{}", file("triplets"))["MRR@10"], 0.99);
  const std::string margins = write("margins.csv", rows_of([](int64_t i, int64_t j) {
                                      return fmt::format("{},{},{},{:.3f}\n", word(i), word(i + 1), word(j),
                                                         closeness(i, i + 1) - closeness(i, j));
                                    }));
  EXPECT_GT(train({.train = margins, .dev = margins}, "{}", file("margins"))["spearman"], 0.9);
}

TEST_F(EmbedderTraining, ATeacherIsImitated) {
  write_encoder(file("teacher"), R"({"vocab_size": 40, "seed": 5, "d_model": 16})");
  EmbedderFiles files = scored();
  files.columns = {"1", "2"};
  files.teacher = file("teacher");
  EXPECT_EQ(error_of([&] { train(files, "{}", file("run")); }),
            file("teacher") + ": has vectors of 16 components, the run that is trained of 24; set dense to 16");
  const char* kDense = R"({"dense": 16, "dense_activation": "identity"})";
  const double before = train(files, R"({"dense": 16, "dense_activation": "identity", "learning_rate": 0,
      "max_steps": 1})",
                              file("before"))["loss"];
  EXPECT_LT(train(files, kDense, file("run"))["loss"], 0.2 * before);
  files.train = files.dev = write("texts.txt", "aaa\nbbb\nccc\n");
  files.columns = {};
  EXPECT_LT(train(files, kDense, file("texts"))["loss"], 0.2 * before);
}

// Dropout gives a text two vectors, which find each other.
// The bytes of an .npy file of float32, [rows, columns].
std::string npy_of(const std::vector<float>& values, size_t columns) {
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return npy("<f4", fmt::format("{}, {}", values.size() / columns, columns), bytes);
}

// The vectors of a file give the same steps as the run that made them.
TEST_F(EmbedderTraining, AFileOfVectorsIsATeacher) {
  EmbedderFiles files = scored();
  files.columns = {"1", "2"};
  const std::string json = R"({"max_steps": 6, "loss": "distill", "normalize": "off"})";
  std::vector<std::string> texts, firsts;
  const ExampleFile rows(files.train, files.columns);
  std::vector<int64_t> numbers(to_size(rows.rows()));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const ExampleRow& row : rows.read(numbers)) {
    texts.insert(texts.end(), row.fields.begin(), row.fields.end());
    firsts.push_back(row.fields.front());
  }
  const Embedder teacher(init);
  const size_t d = to_size(teacher.width());
  for (const char* first : {"false", "true"}) {
    const std::string own = json.substr(0, json.size() - 1) + ", \"teacher_first\": " + first + "}";
    files.teacher = init;
    const std::string expected = file(std::string("run-") + first);
    train(files, own, expected);
    files.teacher = file("vectors.npy");
    spill(files.teacher, npy_of(teacher.embed(texts).values, d));
    train(files, own, file(std::string("file-") + first));
    EXPECT_EQ(slurp(expected + "/model.safetensors"), slurp(file(std::string("file-") + first) + "/model.safetensors"));
  }
  spill(files.teacher, npy_of(teacher.embed(firsts).values, d));
  train(files, json.substr(0, json.size() - 1) + R"(, "teacher_first": true})", file("firsts"));
  EXPECT_EQ(slurp(file("run-true/model.safetensors")), slurp(file("firsts/model.safetensors")));

  EmbedderFiles singles = files;  // a dev file has no vectors of its own, even if it is the training file
  singles.columns = {"1"}, singles.dev_columns = {"1", "2"};
  EXPECT_TRUE(train(singles, json, file("singles")).contains("MRR@10"));

  EXPECT_EQ(error_of([&] { train(files, json, file("none")); }),
            fmt::format("{}: must have {} vectors, one for each text of {} (has {})", files.teacher, texts.size(),
                        files.train, firsts.size()));
  std::vector<float> broken = teacher.embed(texts).values;
  for (float& value : broken) value = std::numeric_limits<float>::infinity();
  spill(files.teacher, npy_of(broken, d));
  EXPECT_EQ(error_of([&] { train(files, json, file("none")); }).substr(0, files.teacher.size() + 9),
            files.teacher + ": vector ");
  spill(files.teacher, npy_of({1, 2, 3}, 3).substr(0, 90));
  expect_contains(error_of([&] { train(files, json, file("none")); }), files.teacher + ": ");
}

TEST_F(EmbedderTraining, TextsFindThemselves) {
  std::string text;
  for (int64_t i = 0; i < kWords; i++) text += word(i) + "\n";
  const EmbedderFiles files{.train = write("texts.txt", text), .dev = file("scored.csv")};
  const std::string json = R"({"dropout": 0.2, "examples": 12, "max_steps": 60})";
  const std::vector<StepReport> found = steps(files, json, file("run"));
  EXPECT_LT(found.back().loss, 0.5 * found.front().loss);
  EXPECT_EQ(error_of([&] { train({.train = files.train}, json, file("none")); }),
            files.train +
                ": evaluation requires columns of two texts, or of two texts and a score: set dev to such a file (has "
                "1 text)");
  EXPECT_EQ(
      error_of([&] { train(files, R"({"dropout": 0})", file("none")); }),
      files.train + ": one column of texts requires dropout, by which the two vectors of a text differ (dropout is 0)");
}

TEST_F(EmbedderTraining, ABatchInPartsHasTheGradientOfTheWhole) {
  const auto first = [&](int64_t tokens) {
    const std::string out = file(fmt::format("run{}", tokens));
    return steps(scored(), fmt::format(R"({{"batch_tokens": {}, "max_steps": 1}})", tokens), out).front();
  };
  const StepReport whole = first(4096), parts = first(16), single = first(1);
  for (const StepReport& other : {parts, single}) {
    EXPECT_NEAR(other.loss, whole.loss, 1e-6 * whole.loss);
    EXPECT_NEAR(other.gradient_norm, whole.gradient_norm, 1e-5 * whole.gradient_norm);
  }
}

TEST_F(EmbedderTraining, InterruptedTrainingEndsWithTheSameBytes) {
  const std::string json = R"({"max_steps": 24, "eval_every": 9, "average": 2, "precision": "int8", "dropout": 0.1,
      "learn_temperature": true, "dense": 8})";  // four epochs
  with_threads(1, [&] { return steps(scored(), json, file("whole")).size(); });
  with_threads(3, [&] {
    for (const size_t stop : {7, 10, 0}) steps(scored(), json, file("parts"), stop);
    return 0;
  });
  expect_same_run(file("whole"), file("parts"));
  EXPECT_EQ(slurp(file("whole/dense.safetensors")), slurp(file("parts/dense.safetensors")));
  EXPECT_EQ(error_of([&] {
              train(scored(), R"({"max_steps": 24, "eval_every": 9, "average": 2, "precision": "int8", "dropout": 0.1,
                  "learn_temperature": true, "dense": 8, "temperature": 0.1})",
                    file("parts"));
            }),
            file("parts") +
                ": temperature was 0.05 when this run was started and is now 0.1; use the same value or another "
                "directory");
}

TEST_F(EmbedderTraining, FrozenParametersStay) {
  train(scored(), R"({"freeze": ["source_embedding"], "max_steps": 3})", file("run"));
  const EncoderRun before = load_run<EncoderRun>(init), after = load_run<EncoderRun>(file("run"));
  std::map<std::string, std::vector<float>> values;
  for (const Parameter<float>& p : before.model->parameters().all()) values[p.name].assign(p.value, p.value + p.size());
  for (const Parameter<float>& p : after.model->parameters().all())
    EXPECT_EQ(values[p.name] == std::vector<float>(p.value, p.value + p.size()), p.name == "source_embedding.weight")
        << p.name;
}

// An adapter has no weights of its own but those of its base.
TEST_F(EmbedderTraining, AnAdapterLearns) {
  const Measures measures = train(scored(), R"({"lora_rank": 8})", file("run"));
  EXPECT_GT(measures.at("spearman"), 0.8);
  EXPECT_FALSE(std::filesystem::exists(file("run/model.safetensors")));
  EXPECT_NE(Embedder(file("run")).embed({"aaa"}).values, Embedder(init).embed({"aaa"}).values);
}

// The linear layer and the temperature are trained with the adapter, which merge_run adds to the weights.
TEST_F(EmbedderTraining, AnAdapterIsTrainedWithItsHead) {
  const std::string json =
      R"({"lora_rank": 4, "dense": 8, "learn_temperature": true, "learning_rate": 0.02, "max_steps": 24,
      "eval_every": 9, "average": 2, "dropout": 0.1})";
  const size_t all = steps(scored(), json, file("whole")).size();
  for (const size_t stop : {7, 10, 0}) steps(scored(), json, file("parts"), stop);
  EXPECT_EQ(all, 24u);
  for (const char* path : {"/adapter_model.safetensors", "/dense.safetensors", "/checkpoints/state.safetensors"})
    EXPECT_TRUE(slurp(file("whole") + path) == slurp(file("parts") + path)) << path;
  EXPECT_EQ(Embedder(file("whole")).width(), 8);
  merge_run(file("whole"), file("merged"));
  EXPECT_EQ(Embedder(file("whole")).embed({"aaa"}).values, Embedder(file("merged")).embed({"aaa"}).values);
}

TEST_F(EmbedderTraining, RowsWithRepeatedTextsAreDropped) {
  RowTexts rows{{"a", "b", "c", "d", "A", "B", "b", "D", "x", "x", "y", "A"}, {1, 2, 3, 4}, {1, 2, 3, 4}};
  drop_repeated_rows(rows);  // the third row has the anchor of the second, the fourth the positive of the first
  EXPECT_EQ(rows.texts, (std::vector<std::string>{"a", "b", "A", "B", "x", "x"}));
  EXPECT_EQ(rows.lines, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(rows.scores, (std::vector<double>{1, 2}));
}

// A language model pools the last token, and a run that was trained here is a start, too.
TEST_F(EmbedderTraining, StartsFromALanguageModelOrAnEmbedder) {
  EmbedderFiles files = scored();
  for (const auto& [name, json] : {std::pair{"characters", R"({"max_steps": 1})"},
                                   std::pair{"pieces", R"({"max_steps": 1, "unit": "pieces", "vocab_size": 300})"}}) {
    files.init = file(name);
    LanguageRecipe recipe = language_preset("lm-small");
    merge_recipe_json(recipe, kSmallRecipe, "");
    merge_recipe_json(recipe, R"({"schedule": "constant"})", "");
    merge_recipe_json(recipe, json, "");
    if (name == std::string_view("pieces")) write("words.txt", lines_of_sentences(300, 4));
    train_language_model({{file("words.txt")}}, recipe, files.init, {});
    const std::string out = file(std::string(name) + "-embedder");
    EXPECT_GT(train(files, "{}", out)["spearman"], 0.8) << name;
    const RunDirectory run(out);
    const auto config = read_fields<EmbeddingConfig>(run, run.embedding());
    EXPECT_EQ(config.pooling, Pooling::last);
    EXPECT_EQ(config.start.empty(), name == std::string_view("characters")) << name;
    if (name != std::string_view("characters")) continue;
    const EmbedderFiles unknown{
        .train = write("unknown.csv", "aaa,bbb,1\naaa,b\u2603,2\n"), .dev = files.dev, .init = files.init};
    expect_contains(error_of([&] { train(unknown, "{}", file("none")); }), unknown.train + ":2: ");  // at the start
  }
  files.init = file("pieces-embedder");
  files.dev = write("others.csv", scored_rows() + "aaa,aaa,1\n");
  EXPECT_GT(train(files, R"({"max_steps": 1})", file("b"))["spearman"], 0.8);  // as before
}

TEST_F(EmbedderTraining, RefusesWhatItCannotTrain) {
  const std::string out = file("run");
  const auto error = [&](const char* json, const EmbedderFiles& files) {
    const std::string message = error_of([&] { train(files, json, out); });
    EXPECT_FALSE(std::filesystem::exists(out));
    return message;
  };
  const auto error_of_rows = [&](const std::string& text, const char* json = "{}") {
    return error(json, {.train = write("rows.csv", text), .dev = file("scored.csv")});
  };
  const std::string rows = file("rows.csv");
  EXPECT_EQ(error_of_rows("a,b,1\nc,,2\n"), rows + ":2: column 2 is empty");
  EXPECT_EQ(error_of_rows("sentence1,sentence2,score\na,b,1\n\"  \",d,2\n"),
            rows + ":3: column \"sentence1\" is empty");
  EXPECT_EQ(error_of_rows("a,b,1\nc,d,two\n"), rows + ":2: column 3 must be a number (is \"two\")");
  EXPECT_EQ(error_of_rows("a,b,1\nc,d,nan\n"), rows + ":2: column 3 must be a number (is \"nan\")");
  EXPECT_EQ(error_of_rows("a,b,1\nc,d,7\n", R"({"score_min": 0, "score_max": 5})"),
            rows + ":2: column 3 must be between 0 and 5 (is 7)");
  EXPECT_EQ(error_of_rows("a\nb\n", R"({"loss": "cosent"})"),
            rows + ": loss cosent requires columns of two texts and a score (has 1 text)");
  EXPECT_EQ(error_of_rows("a,b,1\nc,d,2\n", R"({"loss": "margin_mse"})"),
            rows + ": loss margin_mse requires columns of three texts and a score (has 2 texts and a score)");
  EXPECT_EQ(error_of_rows("sentence1,sentence2,score\na,b,1\n", R"({"loss": "info_nce"})"),
            rows + ": loss info_nce reads no score, but the last column is \"score\": choose the others (columns)");
  EXPECT_EQ(error_of_rows("a,b,3\nc,d,3\n", R"({"loss": "cosine"})"),
            rows + ": all scores are 3; set score_min and score_max");
  EXPECT_EQ(error("{}", {.train = write("rows.csv", "a,b,1\n")}),
            rows + ": is too short to set aside 0.1 of it (dev_share); set dev to a file of rows for evaluation");
  EXPECT_EQ(error_of_rows("a,b,1\nc,d,2\n", R"({"loss": "info_nce"})"),
            rows + ": loss info_nce reads no score, but column 3 has numbers: choose the others (columns)");
  EXPECT_EQ(error_of_rows("a,b,c\nc,d,d\n"), rows + ":2: column 3 is equal to column 2, its positive");
  EXPECT_EQ(error_of_rows("a,b\nc,d\n", R"({"examples": 1})"),
            rows +
                ": loss info_nce without negatives requires batches of two rows or more (examples is 1, 2 rows to "
                "train on)");
  EXPECT_EQ(error_of_rows("a,b,c,1\nc,d,e,-2.5\n"),
            rows +
                ": margins of cosines must be between -2 and 2 (is -2.5); set similarity to dot and normalize to "
                "off");
  EXPECT_EQ(error("{}", {.train = file("scored.csv"), .dev = write("rows.csv", "a,b,1\nc,d,1\n")}),
            rows + ": the rows for evaluation must have different scores (all are 1)");
  EmbedderFiles twice = scored();
  twice.columns = {"1", "1"};
  EXPECT_EQ(error("{}", twice), "columns must be different columns (names \"1\" twice)");

  EXPECT_EQ(error("{}", {}), "training: train must name a file");
  EXPECT_EQ(error(R"({"loss": "distill"})", scored()),
            "training: loss distill requires teacher, a run that embeds texts or a file of vectors");
  EmbedderFiles taught = scored();
  taught.teacher = init;
  EXPECT_EQ(error(R"({"loss": "cosent"})", taught), "training: teacher requires loss distill (is cosent)");
  EXPECT_EQ(error(R"({"teacher_first": true})", scored()), "training: teacher_first requires teacher");
  EXPECT_EQ(error(R"({"device": "cuda"})", scored()), "training: device must be cpu for an embedder (is cuda)");
  EXPECT_EQ(error(R"({"label_smoothing": 0.1})", scored()),
            "training: label_smoothing must be 0 for an embedder (is 0.1)");
  EXPECT_EQ(error(R"({"matryoshka": [8, 25]})", scored()),
            "training: matryoshka must be at most 24, the components of a vector (is 25)");
  EXPECT_EQ(error(R"({"matryoshka": [8, 4, 8]})", scored()),
            "training: matryoshka must be different numbers (has 8 twice)");
  EXPECT_EQ(error(R"({"matryoshka": [0]})", scored()), "training: matryoshka must be between 1 and 16777216 (is 0)");
  EXPECT_EQ(error(R"({"symmetric": true})", scored()), "training: symmetric requires loss info_nce (is cosent)");
  EXPECT_EQ(error(R"({"loss": "cosine", "learn_temperature": true})", scored()),
            "training: learn_temperature requires loss info_nce or cosent (is cosine)");
  EXPECT_EQ(error(R"({"score_min": 1, "score_max": 1})", scored()),
            "training: score_max must be above score_min (are 1 and 1)");
  EXPECT_EQ(error(R"({"max_length": 17})", scored()),
            "training: max_length must be between 3 and 16, the model's (is 17)");

  EXPECT_EQ(error_of([&] { embedder_recipe({}); }), "training: init must name the run that training starts from");
  EXPECT_EQ(error_of([&] { train_embedder(scored(), embedder_fine_tuning(init), out, {}); }),
            "training: init must name the run that training starts from");
  EXPECT_EQ(error_of([&] { train(scored(), "{}", init); }),
            init +
                ": exists but has no embedder.json; expected a run that training an embedder started, or a new "
                "directory");
  EmbedderFiles files = scored();
  files.init = file("nowhere");
  expect_contains(error_of([&] { embedder_recipe({.init = files.init, .out = out}); }), "nowhere");
}

// The rows that are set aside are chosen at random, and the same in every run.
TEST_F(EmbedderTraining, SetsRandomRowsAside) {
  const std::vector<int64_t> few = chosen_for_dev("x", 1000, 0.05), more = chosen_for_dev("x", 1000, 0.1);
  ASSERT_EQ(std::ssize(few), 50);
  ASSERT_EQ(std::ssize(more), 100);
  EXPECT_TRUE(std::ranges::includes(more, few));
  EXPECT_LT(more.front(), 100);
  EXPECT_GT(more.back(), 899);
  EXPECT_EQ(std::ssize(chosen_for_dev("x", 1'000'000, 0.5)), kMostDevRows);
  EXPECT_EQ(numbers_without(4, {1, 3}), (std::vector<int64_t>{0, 2}));
}

// The first run was trained on rows that the second sets aside.
TEST_F(EmbedderTraining, RefusesRowsSetAsideThatTheInitialRunWasTrainedOn) {
  EmbedderFiles files{.train = file("scored.csv")};
  train(files, R"({"max_steps": 1, "dev_share": 0.1})", file("a"));
  files.init = file("a");
  expect_contains(error_of([&] { train(files, R"({"max_steps": 1, "dev_share": 0.2})", file("b")); }),
                  "was trained on rows of " + file("scored.csv") + " that are set aside here (dev_share 0.2)");
  train(files, R"({"max_steps": 1, "dev_share": 0.1})", file("b"));
}

TEST_F(EmbedderTraining, AnotherDevFileOrTeacherIsNoticed) {
  const auto resume = [&](const EmbedderFiles& files, const char* out) {
    return error_of([&] { train(files, R"({"max_steps": 2})", file(out)); });
  };
  EmbedderFiles files = scored();
  train(files, R"({"max_steps": 1})", file("run"));
  files.dev = write("others.csv", scored_rows() + "aaa,aaa,1\n");
  EXPECT_NE(resume(files, "run"), "");
  write_encoder(file("teacher"), R"({"vocab_size": 40, "seed": 5})");
  write_encoder(file("other"), R"({"vocab_size": 40, "seed": 6})");
  EmbedderFiles texts{.train = file("pairs.csv"), .dev = file("pairs.csv"), .teacher = file("teacher")};
  train(texts, R"({"max_steps": 1})", file("texts"));
  texts.teacher = file("other");
  EXPECT_NE(resume(texts, "texts"), "");
  texts.teacher = file("teacher");
  train(texts, R"({"max_steps": 2})", file("texts"));
}

// Also at a usual learning rate, by a hundred times as much as another parameter.
TEST_F(EmbedderTraining, ALearnedTemperatureChanges) {
  const Measures measures = train({.train = file("pairs.csv"), .dev = file("pairs.csv")},
                                  R"({"learn_temperature": true, "examples": 12, "learning_rate": 2e-5,
                                      "max_steps": 100})",
                                  file("run"));
  EXPECT_GT(std::abs(std::log(measures.at("temperature") / 0.05)), 0.05);
  EXPECT_LT(std::abs(std::log(measures.at("temperature") / 0.05)), 0.25);  // 100 steps of at most 0.002
}

TEST_F(EmbedderTraining, ReportsColumnsTruncatedTextsAndDroppedRows) {
  std::string lines, rows = "id,Anchor,Positive,Similarity_Score,note\n";
  TrainingObserver observer;
  observer.on_message = [&](const std::string& line) { lines += line + "\n"; };
  for (int64_t i = 0; i < kWords; i++) rows += fmt::format("{},{},aaa bbb aaa,{},x\n", i, word(i), i);
  EmbedderFiles files{.train = write("named.csv", rows), .dev = file("scored.csv")};
  train(files, R"({"max_steps": 1, "max_length": 4})", file("a"), observer);
  expect_contains(lines,
                  "named.csv: columns \"Anchor\", \"Positive\", \"Similarity_Score\"; not used: \"id\", \"note\"");
  expect_contains(lines, "scored.csv: columns 1, 2, 3 (no header)");
  expect_contains(lines, "of 24 texts of " + files.train + " are truncated to 4 tokens");
  lines.clear();
  files.columns = {"Anchor", "Positive"};
  files.dev_columns = {"1", "2"};
  train(files, R"({"max_steps": 3, "examples": 6})", file("b"), observer);
  expect_contains(lines, "about 83% of the rows are dropped");
  expect_contains(lines, "10 of 12 rows of the epoch were dropped");
}

TEST_F(EmbedderTraining, RefusesDevRowsThatTheInitialRunWasTrainedOn) {
  train(scored(), R"({"max_steps": 1})", file("a"));
  EmbedderFiles files = scored();
  files.init = file("a");
  EXPECT_EQ(error_of([&] { train(files, R"({"max_steps": 1})", file("b")); }),
            file("a") + ": was trained on " + file("scored.csv") +
                ", so that scores on it would be too good; use another dev file");
}

}  // namespace
}  // namespace qkv::testing
