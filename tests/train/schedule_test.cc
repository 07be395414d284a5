// The learning rate at each step, by the formulas.
#include "train/optimizer/schedule.h"

#include <gtest/gtest.h>

#include "core/to_size.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

TEST(Schedule, InverseSquareRootIsTheFormulaOfThePaper) {
  // lrate = d^−0.5 · min(step^−0.5, step · warmup^−1.5), section 5.3, with d = 512 and 4,000 steps of warm-up.
  TrainingConfig c;
  c.warmup_steps = 4000;
  c.learning_rate = 1 / std::sqrt(512.0 * 4000.0);
  for (const int64_t step : {1, 2, 1000, 3999, 4000, 4001, 8000, 100000}) {
    const double s = static_cast<double>(step);
    const double paper = std::pow(512.0, -0.5) * std::min(std::pow(s, -0.5), s * std::pow(4000.0, -1.5));
    EXPECT_NEAR(learning_rate(c, step), paper, 1e-14 * paper) << step;
  }
}

TEST(Schedule, CosineRisesToThePeakAndFallsToZero) {
  TrainingConfig c;
  c.schedule = Schedule::cosine;
  c.learning_rate = 2;
  c.warmup_steps = 10;
  c.max_steps = 110;
  EXPECT_DOUBLE_EQ(learning_rate(c, 1), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(c, 10), 2);
  EXPECT_DOUBLE_EQ(learning_rate(c, 35), 1 + std::sqrt(0.5));  // a quarter of the way: 1 + cos(π / 4)
  EXPECT_DOUBLE_EQ(learning_rate(c, 60), 1);
  EXPECT_DOUBLE_EQ(learning_rate(c, 110), 0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1000), 0);
}

TEST(Schedule, ACosineOverEpochsEndsWithTheirLastStep) {
  TrainingConfig c;
  c.max_epochs = 3;
  c.accumulate = 2;
  set_cosine_end(c, 11);
  EXPECT_EQ(c.max_steps, 0);  // not a cosine
  c.schedule = Schedule::cosine;
  set_cosine_end(c, 11);
  EXPECT_EQ(c.max_steps, 16);
  set_cosine_end(c, 50);
  EXPECT_EQ(c.max_steps, 16);  // given
}

TEST(Schedule, TheNumberOfBatchesPerStepGrows) {
  TrainingConfig c;
  c.accumulate = 4;
  EXPECT_EQ(batches_of_step(c, 1), 4);
  c.growth_steps = 6;
  const std::vector<int64_t> wanted = {1, 2, 2, 3, 3, 4, 4};
  for (int64_t step = 1; step <= 7; step++) EXPECT_EQ(batches_of_step(c, step), wanted[to_size(step - 1)]);
  c.schedule = Schedule::cosine;
  c.max_epochs = 1;
  set_cosine_end(c, 24);
  EXPECT_EQ(c.max_steps, 8);  // the first six take 15
  c.max_steps = 0;
  set_cosine_end(c, 4);
  EXPECT_EQ(c.max_steps, 2);
}

TEST(Schedule, ShardsMultiplyTheBatchesOfAStep) {
  TrainingConfig c;
  c.schedule = Schedule::cosine;
  c.accumulate = 4;
  c.growth_steps = 6;
  c.shards = 3;
  c.max_epochs = 1;
  set_cosine_end(c, 69);
  EXPECT_EQ(c.max_steps, 8);  // the first six take 3 · 15, the next two 3 · 4 each
  c.max_steps = 0;
  set_cosine_end(c, 68);
  EXPECT_EQ(c.max_steps, 7);
  EXPECT_EQ(batches_of_step(c, 3), 2);  // per shard
}

TEST(Schedule, EveryBatchHasItsNumber) {
  TrainingConfig c;
  c.accumulate = 5;
  EXPECT_EQ(batch_number(c, 1, 0, 0), 0u);
  EXPECT_EQ(batch_number(c, 4, 0, 2), 17u);
  c.shards = 3;
  EXPECT_EQ(batch_number(c, 1, 2, 4), 14u);
  EXPECT_EQ(batch_number(c, 2, 0, 0), 15u);
  EXPECT_EQ(batch_number(c, 2, 1, 3), 23u);
  c.shards = 4096;
  c.accumulate = 16;
  EXPECT_EQ(batch_number(c, 65536, 4095, 15), 0xFFFFFFFFu);
  EXPECT_NO_THROW(check_last_step(c, 65536));
  EXPECT_EQ(error_of([&] { check_last_step(c, 65537); }),
            "training: 65537 steps with shards 4096 and accumulate 16 are more than 2^32 batches");
  c.accumulate = int64_t{1} << 62;
  EXPECT_NE(error_of([&] { check_last_step(c, 1); }), "");
  c.accumulate = c.shards = 1;
  EXPECT_NO_THROW(check_last_step(c, kLastStep));
  EXPECT_EQ(error_of([&] { check_last_step(c, kLastStep + 1); }),
            "training: 2147483648 steps are more than the 2147483647 of a run");
}

TEST(Schedule, StartsAtThePeakWithoutWarmup) {
  TrainingConfig c;
  c.learning_rate = 3;
  c.warmup_steps = 0;
  EXPECT_EQ(learning_rate(c, 1), 3);
  EXPECT_EQ(learning_rate(c, 4), 1.5);
}

TEST(Schedule, ACosineNeedsAnEnd) {
  TrainingConfig c;
  c.schedule = Schedule::cosine;
  for (const bool counts_batches : {false, true})
    EXPECT_EQ(error_of([&] { check_schedule(c, counts_batches); }),
              fmt::format("training: schedule cosine needs max_steps{}, where the learning rate reaches 0",
                          counts_batches ? " or max_epochs" : ""));
  c.max_epochs = 2;
  EXPECT_NE(error_of([&] { check_schedule(c, false); }), "");
  EXPECT_NO_THROW(check_schedule(c, true));
  c.max_steps = 5;
  EXPECT_NO_THROW(check_schedule(c, false));
}

}  // namespace
}  // namespace qkv
