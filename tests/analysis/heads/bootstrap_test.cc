// Bootstrap intervals.
#include "analysis/heads/bootstrap.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "core/to_size.h"

namespace qkv {
namespace {

std::vector<double> normal_values(int64_t count, uint64_t seed) {
  Random random(seed, Stream::test);
  std::vector<double> values;
  for (int64_t i = 0; i < count; i++) values.push_back(1 + random.normal());
  return values;
}

TEST(Bootstrap, TheSeedDecidesTheInterval) {
  const std::vector<double> values = normal_values(50, 1), weights(50, 2);
  const Change a = Bootstrap(50, 200, 1).of(values, weights), b = Bootstrap(50, 200, 1).of(values, weights),
               c = Bootstrap(50, 200, 2).of(values, weights);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_NE(a.low, c.low);
  EXPECT_EQ(a.value, c.value);
}

TEST(Bootstrap, TheIntervalOfAMeanIsAboutTwoStandardErrors) {
  constexpr int64_t kCount = 400;
  const std::vector<double> values = normal_values(kCount, 3), weights(kCount, 1);
  const Change change = Bootstrap(kCount, 4000, 1).of(values, weights);
  double mean = 0, variance = 0;
  for (const double v : values) mean += v / kCount;
  for (const double v : values) variance += (v - mean) * (v - mean) / kCount;
  const double expected = 1.96 * std::sqrt(variance / kCount);
  EXPECT_NEAR(change.value, mean, 1e-12);
  // The percentiles of 4,000 samples have a standard error of about 4 % of the half width.
  EXPECT_NEAR(change.high - mean, expected, 0.15 * expected);
  EXPECT_NEAR(mean - change.low, expected, 0.15 * expected);
}

TEST(Bootstrap, WeighsTextsByTheirTokens) {
  const Change change = Bootstrap(2, 10, 1).of(std::vector<double>{1, 6}, std::vector<double>{1, 2});
  EXPECT_DOUBLE_EQ(change.value, 7 / 3.0);
  EXPECT_GE(change.low, 1);
  EXPECT_LE(change.high, 3);
}

TEST(Bootstrap, ARatioIsAMeasureOfSamples) {
  const std::vector<double> values = normal_values(20, 5), weights = normal_values(20, 6);
  const Bootstrap bootstrap(20, 100, 1);
  const Change a = bootstrap.of(values, weights), b = bootstrap.of([&](std::span<const uint32_t> sample) {
    EXPECT_EQ(sample.size(), 20u);
    double value = 0, weight = 0;
    for (const uint32_t t : sample) value += values[t], weight += weights[t];
    return value / weight;
  });
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(Bootstrap, MemoryDoesNotGrowWithTheSamples) {
  constexpr int64_t kMany = 1'000'000;
  const Bootstrap bootstrap(kMany, kMany, 1);  // samples of 4 TB
  EXPECT_EQ(Bootstrap(kMany, 1, 1).of([](std::span<const uint32_t> sample) { return 1.0 * std::ssize(sample); }).low,
            kMany);
}

TEST(Bootstrap, ASingleTextHasNoSpread) {
  const Change change = Bootstrap(1, 10, 1).of(std::vector<double>{3}, std::vector<double>{4});
  EXPECT_EQ(change.value, 0.75);
  EXPECT_EQ(change.low, 0.75);
  EXPECT_EQ(change.high, 0.75);
}

}  // namespace
}  // namespace qkv
