// Steps of several shards: their batches, the sums of their gradients, and the bytes of runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/random.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::spill;
using testing::TempDir;
using testing::with_threads;

// A kind of model with its data, small enough for a few steps of many shards. `train` changes the recipe by JSON.
struct Case {
  std::string name;
  std::function<bool(const std::string& json, const std::string& out, const TrainingObserver& observer)> train;
};

constexpr const char* kSmall = R"({"d_model": 16, "heads": 2, "ffn": 16, "decoder_layers": 1, "max_length": 16,
    "batch_tokens": 64, "warmup_steps": 0, "learning_rate": 0.01, "dropout": 0.2, "max_epochs": 0, "eval_every": 0,
    "ema_decay": 0.9})";

std::string lines(int64_t n, uint64_t seed) {
  std::string text;
  for (const std::string& sentence : testing::sentences(n, seed)) text += sentence + "\n";
  return text;
}

Case translation(const TempDir& directory) {
  for (const char* side : {"a", "b"}) {
    spill(directory / "train." + side, lines(200, 1));
    spill(directory / "dev." + side, lines(5, 2));
  }
  return {"translate", [&](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            TranslationRecipe recipe = translation_preset("tiny");
            merge_recipe_json(recipe, kSmall, "");
            merge_recipe_json(recipe, R"({"encoder_layers": 1, "vocab_size": 60})", "");
            merge_recipe_json(recipe, json, "");
            const TranslationFiles files{
                {directory / "train.a", directory / "train.b"}, {directory / "dev.a", directory / "dev.b"}, "", ""};
            return train_translator(files, recipe, out, observer);
          }};
}

Case recommendation(const TempDir& directory) {
  Random random(3, Stream::test);
  std::string log, table = "item,colour\n";
  for (int64_t item = 0; item < 40; item++) table += fmt::format("{},{}\n", item, item % 8);
  for (int64_t user = 0; user < 80; user++)
    for (int64_t i = 0; i < 10; i++) log += fmt::format("{} {}\n", user, random.below(40));
  spill(directory / "log.txt", log);
  spill(directory / "items.csv", table);
  return {"recommend", [&](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            RecommendationRecipe recipe = recommendation_preset("films");
            merge_recipe_json(recipe, kSmall, "");
            merge_recipe_json(recipe, R"({"schedule": "constant"})", "");
            merge_recipe_json(recipe, json, "");
            return train_recommender({{directory / "log.txt"}, {}, "", directory / "items.csv"}, recipe, out, observer);
          }};
}

Case language(const TempDir& directory) {
  spill(directory / "text.txt", lines(300, 4));
  return {"lm", [&](const std::string& json, const std::string& out, const TrainingObserver& observer) {
            LanguageRecipe recipe = language_preset("lm-small");
            merge_recipe_json(recipe, kSmall, "");
            merge_recipe_json(recipe, R"({"schedule": "constant"})", "");
            merge_recipe_json(recipe, json, "");
            return train_language_model({{directory / "text.txt"}}, recipe, out, observer);
          }};
}

std::vector<Case> cases(const TempDir& directory) {
  return {translation(directory), recommendation(directory), language(directory)};
}

// Trains and returns the reports of the steps, which end after `stop` steps of this call unless it is 0.
std::vector<StepReport> steps_of(const Case& c, const std::string& json, const std::string& out, size_t stop = 0) {
  std::vector<StepReport> steps;
  TrainingObserver observer;
  observer.on_step = [&](const StepReport& step) { steps.push_back(step); };
  observer.should_stop = [&] { return steps.size() == stop; };
  EXPECT_EQ(c.train(json, out, observer), stop == 0);
  return steps;
}

void expect_same_run(const std::string& a, const std::string& b) {
  for (const char* file : {"/model.safetensors", "/checkpoints/state.safetensors"}) {
    EXPECT_NE(testing::slurp(a + file), "");
    EXPECT_TRUE(testing::slurp(a + file) == testing::slurp(b + file)) << b << file;
  }
}

TEST(Shards, ChangeNoByteWithTheNumberOfThreadsOrWhenResumed) {
  const TempDir directory;
  const std::string json = R"({"shards": 4, "accumulate": 2, "growth_steps": 4, "max_steps": 7, "average": 0})";
  for (const Case& c : cases(directory)) {
    const std::string whole = directory / c.name + "-1";
    with_threads(1, [&] { return steps_of(c, json, whole); });
    for (const int threads : {2, 3}) {
      const std::string out = directory / fmt::format("{}-{}", c.name, threads);
      with_threads(threads, [&] { return steps_of(c, json, out); });
      expect_same_run(whole, out);
    }
    const std::string parts = directory / c.name + "-parts";
    for (const size_t stop : {1, 3, 0}) steps_of(c, json, parts, stop);
    expect_same_run(whole, parts);
  }
}

// The learning rate is 0, so that each step compares S shards of one batch with one shard of S batches, which have the
// same batches and dropout, on the same weights. Losses are added in another order, with a rounding of a double for
// each batch. An element of the gradient sums terms of at most N = 4 · 64 tokens. Either order has an error of at most
// N roundings of the sum of the magnitudes, which for terms of random signs is √N times the sum.
TEST(Shards, DifferFromAccumulatedBatchesByRoundingOnly) {
  const TempDir directory;
  for (const Case& c : cases(directory))
    for (const int64_t n : {2, 4}) {
      const auto run = [&](const char* value) {
        const std::string json = fmt::format(R"({{"{}": {}, "learning_rate": 0, "max_steps": 5}})", value, n);
        return steps_of(c, json, directory / fmt::format("{}-{}-{}", c.name, value, n));
      };
      const std::vector<StepReport> shards = run("shards"), batches = run("accumulate");
      ASSERT_EQ(shards.size(), 5u);
      ASSERT_EQ(batches.size(), 5u);
      for (size_t i = 0; i < shards.size(); i++) {
        EXPECT_EQ(shards[i].step, static_cast<int64_t>(i + 1));
        EXPECT_EQ(shards[i].epoch, batches[i].epoch);
        EXPECT_EQ(shards[i].target_tokens, batches[i].target_tokens);
        EXPECT_NEAR(shards[i].loss, batches[i].loss, 4 * 0x1p-53 * batches[i].loss);
        EXPECT_NEAR(shards[i].nll, batches[i].nll, 4 * 0x1p-53 * batches[i].nll);
        EXPECT_NEAR(shards[i].gradient_norm, batches[i].gradient_norm,
                    2 * 256 * 16 * 0x1p-24 * batches[i].gradient_norm);
      }
    }
}

// The learning rate is 0, so that the steps of one shard have the gradients of the shards.
TEST(Shards, TheNoiseScaleIsThatOfTheirGradients) {
  constexpr size_t kMany = 3, kLast = 4;
  const TempDir directory;
  for (const Case& c : cases(directory)) {
    const auto run = [&](size_t shards, size_t steps) {
      const std::string json = fmt::format(R"({{"shards": {}, "learning_rate": 0, "max_steps": {}}})", shards, steps);
      return steps_of(c, json, directory / fmt::format("{}-{}", c.name, shards));
    };
    const std::vector<StepReport> single = run(1, kMany * kLast), many = run(kMany, kLast);
    double variance = 0, square = 0;  // of the gradient of a token, as averages
    for (size_t i = 0; i < kLast; i++) {
      const double T = static_cast<double>(many[i].target_tokens), B = std::pow(many[i].gradient_norm, 2);
      double A = 0;
      for (size_t s = i * kMany; s < (i + 1) * kMany; s++)
        A += static_cast<double>(single[s].target_tokens) * std::pow(single[s].gradient_norm, 2) / T;
      variance = 0.99 * variance + T * (A - B) / (kMany - 1);
      square = 0.99 * square + (kMany * B - A) / (kMany - 1);
      EXPECT_NEAR(many[i].noise_scale, square > 0 ? variance / square : 0, 1e-3 * many[i].noise_scale) << c.name;
    }
    EXPECT_GT(many.back().noise_scale, 0) << c.name;
    EXPECT_EQ(single.back().noise_scale, 0) << c.name;
  }
}

TEST(Shards, AStepTakesTheBatchesOfAllItsShards) {
  const TempDir directory;
  const Case c = language(directory);
  const auto tokens = [&](const char* json, const char* name) {
    std::vector<int64_t> counts;
    for (const StepReport& step : steps_of(c, json, directory / name)) counts.push_back(step.target_tokens);
    return counts;
  };
  const std::vector<int64_t> single = tokens(R"({"max_steps": 12})", "single"),
                             many = tokens(R"({"max_steps": 2, "shards": 3, "accumulate": 2})", "many");
  ASSERT_EQ(single.size(), 12u);
  EXPECT_EQ(many, (std::vector<int64_t>{single[0] + single[1] + single[2] + single[3] + single[4] + single[5],
                                        single[6] + single[7] + single[8] + single[9] + single[10] + single[11]}));
}

TEST(Shards, MayNotChangeWhenARunIsResumed) {
  const TempDir directory;
  const Case c = language(directory);
  const std::string out = directory / "run";
  steps_of(c, R"({"max_steps": 1, "shards": 2})", out);
  EXPECT_EQ(testing::error_of([&] { steps_of(c, R"({"max_steps": 2, "shards": 4})", out); }),
            out + ": shards was 2 when this run was started and is now 4; use the same value or another directory");
}

}  // namespace
}  // namespace qkv
