#include "ranks/step_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qkv {
namespace {

// Preset base on 16 cores, with 94 % of 1 Gbit/s; messages take no time.
constexpr StepCosts kBase = {.shard = 0.63, .update = 0.08, .parameters = 52'330'496, .embedding_share = 0.1};
constexpr Network kGigabit = {117.5e6, 0};

TEST(StepModel, OfOneRankIsTheWorkOfAllShards) {
  EXPECT_DOUBLE_EQ(step_seconds(kBase, kGigabit, 64, 1), 64 * 0.63 + 0.08);
}

TEST(StepModel, AddsTheExchangeWithoutOverlap) {
  const double exchange = 4.0 * 52'330'496 * 7 / 8 / 117.5e6;
  EXPECT_NEAR(step_seconds(kBase, kGigabit, 64, 8, false), 8 * 0.63 + 0.01 + 2 * exchange, 1e-9);
}

TEST(StepModel, HidesTheExchangeBehindOneShard) {
  EXPECT_NEAR(step_seconds(kBase, kGigabit, 64, 8), step_seconds(kBase, kGigabit, 64, 8, false) - 0.63, 1e-9);
}

TEST(StepModel, HidesNothingOfTheEmbeddings) {
  const Network fast = {117.5e8, 0};
  const double exchange = 4.0 * 52'330'496 * 7 / 8 / 117.5e8;
  EXPECT_NEAR(step_seconds(kBase, fast, 64, 8), 8 * 0.63 + 0.01 + 2 * 0.1 * exchange, 1e-9);
}

TEST(StepModel, WaitsForTheRankWithTheMostShardsAndForTheSlowest) {
  StepCosts costs = {.shard = 1};
  EXPECT_DOUBLE_EQ(step_seconds(costs, kGigabit, 10, 4), 3);
  costs.spread = 0.02;
  EXPECT_DOUBLE_EQ(step_seconds(costs, kGigabit, 12, 4), 3 * (1 + 0.02 * std::sqrt(2 * std::log(4.0) / 3)));
}

TEST(StepModel, CountsAMessageToEachOfTheOthers) {
  StepCosts costs = {.parameters = 1};
  const Network slow = {1e30, 1};
  for (const int64_t ranks : {2, 63, 64})
    EXPECT_NEAR(step_seconds(costs, slow, 64, ranks, false), 2 * static_cast<double>(ranks - 1), 1e-6) << ranks;
}

}  // namespace
}  // namespace qkv
