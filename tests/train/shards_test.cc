// Steps of several shards: their batches, the sums of their gradients, and the bytes of runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/temp_dir.h"
#include "tests/train/training_cases.h"

namespace qkv {
namespace {

using testing::expect_same_run;
using testing::spill;
using testing::steps_of;
using testing::TempDir;
using testing::TrainingCase;
using testing::with_threads;

std::vector<TrainingCase> cases(const TempDir& directory) {
  return {testing::translation_case(directory), testing::recommendation_case(directory),
          testing::language_case(directory), testing::encoder_case(directory), testing::classifier_case(directory)};
}

TEST(Shards, ChangeNoByteWithTheNumberOfThreadsOrWhenResumed) {
  const TempDir directory;
  const std::string json = R"({"shards": 4, "accumulate": 2, "growth_steps": 4, "max_steps": 7, "average": 0})";
  for (const TrainingCase& c : cases(directory)) {
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
  for (const TrainingCase& c : cases(directory))
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
  for (const TrainingCase& c : cases(directory)) {
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
  const TrainingCase c = testing::language_case(directory);
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
  const TrainingCase c = testing::language_case(directory);
  const std::string out = directory / "run";
  steps_of(c, R"({"max_steps": 1, "shards": 2})", out);
  EXPECT_EQ(testing::error_of([&] { steps_of(c, R"({"max_steps": 2, "shards": 4})", out); }),
            out + ": shards was 2 when this run was started and is now 4; use the same value or another directory");
}

}  // namespace
}  // namespace qkv
