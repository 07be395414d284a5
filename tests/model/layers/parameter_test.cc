// Initial values of parameters.
#include "model/layers/parameter.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qkv {
namespace {

double deviation_of(const Parameter<double>& p) {
  double sum = 0;
  for (int64_t i = 0; i < p.size(); i++) sum += p.value[i] * p.value[i];
  return std::sqrt(sum / static_cast<double>(p.size()));
}

// The deviation of n normal numbers has a relative error below 4 / √(2 n), except once in 16,000 times.
constexpr int64_t kSize = 20'000;
const double kShare = 4 / std::sqrt(2.0 * kSize);

TEST(Parameters, StartWithTheirDeclaredNoise) {
  ParameterList<double> list;
  const auto* table = list.add("table", {kSize}, Init::gaussian(0.5));
  const auto* weight = list.add("weight", {100, 200}, Init::xavier(100, 200));
  const auto* gain = list.add("gain", {7}, Init::ones());
  list.allocate();
  list.initialize(1);
  EXPECT_NEAR(deviation_of(*table), 0.5, 0.5 * kShare);
  const double bound = std::sqrt(6.0 / 300);
  for (int64_t i = 0; i < weight->size(); i++) EXPECT_LE(std::abs(weight->value[i]), bound);
  EXPECT_NEAR(deviation_of(*weight), bound / std::sqrt(3), bound * kShare);
  for (int64_t i = 0; i < gain->size(); i++) EXPECT_EQ(gain->value[i], 1);
}

TEST(Parameters, AGivenDeviationReplacesAllDeclaredNoise) {
  ParameterList<double> list;
  const auto* table = list.add("table", {kSize}, Init::gaussian(0.5));
  const auto* weight = list.add("weight", {100, 200}, Init::xavier(100, 200));
  const auto* bias = list.add("bias", {7}, Init::zeros());
  const auto* gain = list.add("gain", {7}, Init::ones());
  list.allocate();
  list.initialize(1, 0.02);
  for (const auto* p : {table, weight}) EXPECT_NEAR(deviation_of(*p), 0.02, 0.02 * kShare);
  EXPECT_EQ(deviation_of(*bias), 0);
  EXPECT_EQ(deviation_of(*gain), 1);
}

}  // namespace
}  // namespace qkv
