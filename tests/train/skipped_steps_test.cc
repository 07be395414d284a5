// Steps with a loss or gradient that is not finite are not applied, and training that ends for them names the cause.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/random.h"
#include "core/to_size.h"
#include "io/runs/run.h"
#include "io/weights/weights.h"
#include "qkv/encoder.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/numeric.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::normal;
using testing::spill;
using testing::TempDir;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> bytes_of(const ParameterList<float>& parameters, const OptimizerState& optimizer) {
  const auto weights = std::as_bytes(parameters.values());
  std::vector<std::byte> all(weights.begin(), weights.end());
  for (const OptimizerState::Array& array : optimizer.arrays())
    all.insert(all.end(), array.bytes.begin(), array.bytes.end());
  return all;
}

TEST(SkippedSteps, LeaveWeightsMomentsAndAverage) {
  for (const Moments moments : {Moments::float32, Moments::bfloat16, Moments::int8})
    for (const double clip_norm : {0.0, 1.0})
      for (const float poison : {kInfinity, -kInfinity, kNaN}) {
        TrainingConfig config;
        config.moments = moments;
        config.clip_norm = clip_norm;
        config.ema_decay = 0.9;
        ParameterList<float> list;
        list.add("w", {1000}, Init::gaussian(1));
        list.allocate();
        list.allocate_gradients();
        list.initialize(1);
        OptimizerState optimizer(config, list);
        const auto update = [&](int64_t step, std::optional<size_t> poisoned) {
          std::ranges::copy(normal<float>(1000, 3), list.gradients().begin());
          if (poisoned) list.gradients()[*poisoned] = poison;
          const double norm = optimizer.update(step, 10);
          for (const float g : list.gradients()) EXPECT_EQ(g, 0);
          return norm;
        };
        EXPECT_TRUE(std::isfinite(update(1, std::nullopt)));
        const std::vector<std::byte> before = bytes_of(list, optimizer);
        for (const size_t place : {0, 517, 999}) EXPECT_FALSE(std::isfinite(update(2, place)));
        EXPECT_EQ(bytes_of(list, optimizer), before);
        EXPECT_TRUE(std::isfinite(update(2, std::nullopt)));
        EXPECT_NE(bytes_of(list, optimizer), before);
      }
}

TEST(SkippedSteps, LeaveRowsThatWouldBeUpdated) {
  TrainingConfig config;
  ParameterList<float> list;
  list.add("table", {5, 4}, Init::gaussian(1));
  list.add("rest", {3}, Init::gaussian(1));
  list.allocate();
  list.allocate_gradients();
  list.initialize(1);
  OptimizerState optimizer(config, list, true);
  const std::vector<int32_t> rows = {3, 1};
  std::vector<float> gradient = normal<float>(11, 2);
  gradient[5] = kNaN;
  const std::vector<std::byte> before = bytes_of(list, optimizer);
  const RowGradients g{rows, {gradient.data(), 2, 4}, std::span(gradient).subspan(8)};
  EXPECT_FALSE(std::isfinite(optimizer.update(1, 10, g)));
  EXPECT_EQ(bytes_of(list, optimizer), before);
  gradient[5] = 1;
  EXPECT_TRUE(std::isfinite(optimizer.update(1, 10, g)));
  EXPECT_NE(bytes_of(list, optimizer), before);
}

// A kind of model, whose data have one token that occurs in one place only.
struct PoisonCase {
  std::string name, row_of, place;  // the table, and the place of the token as errors name it
  std::function<int64_t(const RunDirectory&)> row;
  std::function<bool(const std::string& init, const std::string& json, const std::string& out,
                     const TrainingObserver& observer)>
      train;
};

constexpr const char* kPoisonRecipe = R"({"d_model": 16, "heads": 2, "ffn": 16, "decoder_layers": 1, "max_length": 24,
    "batch_tokens": 64, "warmup_steps": 0, "learning_rate": 0.001, "dropout": 0.1, "max_epochs": 2, "eval_every": 0,
    "ema_decay": 0.9, "average": 0, "scale_embeddings": true, "tied_output": false})";

template <class R>
R recipe_of(R recipe, const std::string& json, const std::string& more = "{}") {
  merge_recipe_json(recipe, kPoisonRecipe, "");
  merge_recipe_json(recipe, more, "");
  merge_recipe_json(recipe, json, "");
  return recipe;
}

PoisonCase poisoned_translation(const TempDir& directory) {
  std::string lines, dev;
  for (const std::string& sentence : testing::sentences(120, 1)) lines += sentence + "\n";
  for (const std::string& sentence : testing::sentences(4, 2)) dev += sentence + "\n";
  spill(directory / "train.a", lines + "\n" + "ZZ ZZ\n" + lines);  // line 121 is empty: skipped pairs count as lines
  spill(directory / "train.b", lines + "\n" + "b\n" + lines);
  spill(directory / "dev.a", dev);
  spill(directory / "dev.b", dev);
  const TranslationFiles files{
      {directory / "train.a", directory / "train.b"}, {directory / "dev.a", directory / "dev.b"}, "", ""};
  return {
      "translate", "source_embedding.weight", "line 122 of " + (directory / "train.a"),
      [](const RunDirectory& run) { return read_run<TranslatorRun>(run).tokenizers.source.encode("ZZ ZZ").back(); },
      [=](const std::string& init, const std::string& json, const std::string& out, const TrainingObserver& observer) {
        const auto recipe = recipe_of(translation_preset("tiny"), json,
                                      R"({"encoder_layers": 1, "vocab_size": 60, "joint_vocabulary": false})");
        TranslationFiles own = files;
        own.init = init;
        return train_translator(own, recipe, out, observer);
      }};
}

PoisonCase poisoned_language(const TempDir& directory) {
  std::string text;
  for (int64_t n = 0; n < 200; n++) text += n == 76 ? "a Z b\n" : fmt::format("{:03} is a number\n", n * 7919 % 1000);
  const LanguageFiles files{{directory / "text.txt"}};
  spill(files.text.front(), text);
  return {
      "lm", "target_embedding.weight", "line 77 of " + (directory / "text.txt"),
      [](const RunDirectory& run) { return read_run<LanguageRun>(run).codec.encode("Z", "").front(); },
      [=](const std::string& init, const std::string& json, const std::string& out, const TrainingObserver& observer) {
        const auto recipe =
            recipe_of(language_preset("lm-small"), json, R"({"schedule": "constant", "sample_tokens": 0})");
        LanguageFiles own = files;
        own.init = init;
        return train_language_model(own, recipe, out, observer);
      }};
}

// The training sequence of user 41 is the last 25 of 38 events, and the history of the validation the last 24. The item
// occurs twice, because one with a single event is dropped.
PoisonCase poisoned_recommendation(const TempDir& directory) {
  Random random(3, Stream::test);
  std::string log;
  for (int64_t user = 0; user < 60; user++)
    for (int64_t i = 0; i < (user == 41 ? 40 : 10); i++)
      log +=
          fmt::format("u{} {}\n", user, user == 41 && (i == 5 || i == 13) ? "rare" : std::to_string(random.below(30)));
  const RecommendationFiles files{{directory / "log.txt"}, {}};
  spill(files.data.front(), log);
  return {
      "recommend", "target_embedding.weight", "user u41",
      [](const RunDirectory& run) {
        const auto items = read_run<RecommenderRun>(run).log.data.items;
        return std::ranges::find(items, "rare") - items.begin();
      },
      [=](const std::string& init, const std::string& json, const std::string& out, const TrainingObserver& observer) {
        const auto recipe = recipe_of(recommendation_preset("films"), json, R"({"schedule": "constant",
                "loss": "sampled_softmax", "negatives": 4, "label_smoothing": 0})");
        RecommendationFiles own = files;
        own.init = init;
        return train_recommender(own, recipe, out, observer);
      }};
}

// Without masks every token is read in every epoch. The dev text is the end of the text.
PoisonCase poisoned_encoder(const TempDir& directory) {
  std::string text;
  for (int64_t n = 0; n < 200; n++) text += n == 76 ? "Z\n" : fmt::format("{:03} is a number\n", n * 7919 % 1000);
  const EncoderFiles files{{directory / "lines.txt"}};
  spill(files.text.front(), text);
  return {
      "encoder", "source_embedding.weight", "line 77 of " + (directory / "lines.txt"),
      [](const RunDirectory& run) { return read_run<EncoderRun>(run).codec.encode("Z", "").back(); },
      [=](const std::string& init, const std::string& json, const std::string& out, const TrainingObserver& observer) {
        EncoderRecipe recipe = encoder_preset("encoder-tiny");
        nlohmann::json values = nlohmann::json::parse(kPoisonRecipe);
        values.erase("decoder_layers");
        merge_recipe_json(recipe, values.dump(), "");
        merge_recipe_json(recipe, R"({"encoder_layers": 1, "schedule": "constant", "lines": true,
                "mask_token_share": 0, "random_token_share": 0})",
                          "");
        if (init.empty()) merge_recipe_json(recipe, R"({"vocab_size": 60})", "");
        merge_recipe_json(recipe, json, "");
        EncoderFiles own = files;
        own.init = init;
        return train_encoder(own, recipe, out, observer);
      }};
}

std::vector<PoisonCase> poison_cases(const TempDir& directory) {
  return {poisoned_translation(directory), poisoned_language(directory), poisoned_recommendation(directory),
          poisoned_encoder(directory)};
}

// Returns a run to start from, in which the embedding of the token is so large that the model computes infinity.
std::string poisoned_run(const PoisonCase& c, const TempDir& directory) {
  const std::string path = directory / (c.name + "-init");
  EXPECT_TRUE(c.train("", R"({"max_steps": 1, "max_epochs": 0})", path, {}));
  const RunDirectory run(path);
  const ModelConfig config = read_config(run).model;
  Transformer<float> model(config, read_config(run).items);
  load_weights(run.model(), model.parameters(), model.parameters().values());
  float* row = testing::values_of(model.parameters(), c.row_of) + c.row(run) * config.d_model;
  std::fill_n(row, config.d_model, 3e38f);
  save_weights(run.model(), model.parameters(), model.parameters().values());
  return path;
}

std::vector<nlohmann::json> steps_of(const std::string& run) {
  std::vector<nlohmann::json> steps;
  std::istringstream lines(testing::slurp(RunDirectory(run).metrics()));
  for (std::string line; std::getline(lines, line);)
    if (nlohmann::json record = nlohmann::json::parse(line); record.contains("loss"))
      steps.push_back(std::move(record));
  return steps;
}

TEST(SkippedSteps, ArePoisonedBatchesAndNothingElse) {
  const TempDir directory;
  for (const PoisonCase& c : poison_cases(directory)) {
    const std::string init = poisoned_run(c, directory);
    for (const std::string shards : {"1", "2"}) {
      const std::string out = directory / (c.name + shards);
      int64_t skipped = 0;
      TrainingObserver observer;
      observer.on_message = [&](const std::string& line) {
        skipped += line.find(" skipped: its ") != std::string::npos;
      };
      EXPECT_TRUE(c.train(init, "{\"shards\": " + shards + "}", out, observer)) << c.name;
      EXPECT_EQ(skipped, 2) << c.name;  // once in each epoch
      const std::vector<nlohmann::json> steps = steps_of(out);
      for (size_t i = 0; i < steps.size(); i++) EXPECT_EQ(steps[i]["step"], i + 1);
      EXPECT_GE(steps.back().value("skipped_steps", 0), 1) << c.name;
    }
  }
}

TEST(SkippedSteps, AreNamedByThePlaceInTheData) {
  const TempDir directory;
  for (const PoisonCase& c : poison_cases(directory)) {
    const std::string init = poisoned_run(c, directory);
    for (const std::string more : {R"("max_skipped_steps": 0)", R"("max_skipped_steps": 0, "shards": 3)",
                                   R"("max_skipped_steps": 0, "accumulate": 2)", R"("detect_anomaly": true)"}) {
      const std::string error = error_of([&] { c.train(init, "{" + more + "}", directory / "out", {}); });
      expect_contains(error, "step ");
      expect_contains(error, "forward is not finite for " + c.place + " (the batch has ");
      expect_contains(error, "no state was saved");
      EXPECT_EQ(error.find("in a row: 1 (max_skipped_steps is 0)") == std::string::npos,
                more.find("detect") != std::string::npos);
      EXPECT_EQ(error.find('\n'), std::string::npos);
      std::filesystem::remove_all(directory / "out");
    }
  }
}

// Training that is stopped and resumed after each step, the skipped ones included.
TEST(SkippedSteps, ResumeWithTheSameBytes) {
  const TempDir directory;
  for (const PoisonCase& c : poison_cases(directory)) {
    const std::string init = poisoned_run(c, directory);
    EXPECT_TRUE(c.train(init, "{}", directory / "whole", {}));
    TrainingObserver stopping;
    stopping.should_stop = [] { return true; };
    while (!c.train(init, "{}", directory / "parts", stopping)) {
    }
    for (const char* file : {"model.safetensors", "checkpoints/state.safetensors"})
      EXPECT_EQ(testing::slurp(directory / "whole/" + file), testing::slurp(directory / "parts/" + file)) << c.name;
    EXPECT_EQ(steps_of(directory / "whole").back()["skipped_steps"],
              steps_of(directory / "parts").back()["skipped_steps"]);
    std::filesystem::remove_all(directory / "whole");
    std::filesystem::remove_all(directory / "parts");
  }
}

TEST(SkippedSteps, DetectAnomalyChangesNoByte) {
  const TempDir directory;
  for (const PoisonCase& c : poison_cases(directory)) {
    for (const char* checked : {"false", "true"})
      EXPECT_TRUE(
          c.train("", fmt::format(R"({{"max_steps": 5, "detect_anomaly": {}}})", checked), directory / checked, {}));
    for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"})
      EXPECT_EQ(testing::slurp(directory / "false" + file), testing::slurp(directory / "true" + file)) << c.name;
    std::filesystem::remove_all(directory / "false");
    std::filesystem::remove_all(directory / "true");
  }
}

}  // namespace
}  // namespace qkv
