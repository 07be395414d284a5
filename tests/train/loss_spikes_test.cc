// Losses far above the recent ones.
#include "train/loop/loss_spikes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qkv {
namespace {

TEST(LossSpikes, NeedTwentyLosses) {
  LossSpikes spikes(5);
  for (int64_t i = 0; i < LossSpikes::kLeast; i++) {
    EXPECT_TRUE(std::isinf(spikes.bound()));
    spikes.add(2);
  }
  EXPECT_EQ(spikes.bound(), 2);
}

// Losses 1, 2, … 100: the median is 51, the distances are 50, … 1, 0, 1, … 49.
TEST(LossSpikes, AreAboveTheMedianByAFactorTimesTheDeviation) {
  LossSpikes spikes(3);
  for (int64_t i = 1; i <= 100; i++) spikes.add(static_cast<double>(i));
  EXPECT_EQ(spikes.bound(), 51 + 3 * 25);
}

TEST(LossSpikes, RememberTheLastHundredLosses) {
  LossSpikes spikes(1);
  for (int64_t i = 0; i < 250; i++) spikes.add(static_cast<double>(i));
  EXPECT_EQ(spikes.losses().size(), 100u);
  EXPECT_EQ(spikes.losses().front(), 150);
}

TEST(LossSpikes, HardlyMoveTheBound) {
  LossSpikes spikes(4);
  for (int64_t i = 0; i < 100; i++) spikes.add(2 + 0.1 * static_cast<double>(i % 3));
  const double before = spikes.bound();
  for (int64_t i = 0; i < 5; i++) spikes.add(1e6);
  EXPECT_EQ(spikes.bound(), before);
}

TEST(LossSpikes, AreOffWithoutAFactor) {
  LossSpikes spikes(0);
  spikes.add(1);
  EXPECT_FALSE(spikes.is_on());
  EXPECT_TRUE(spikes.losses().empty());
}

}  // namespace
}  // namespace qkv
