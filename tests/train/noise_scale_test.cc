#include "train/loop/noise_scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

constexpr int64_t kElements = 40000;

// Returns a number with the mean 0 and the variance 1.
double draw_noise(Random& random) {
  return (static_cast<double>(random.below(10001)) - 5000) / 10001 * std::sqrt(12.0);
}

class NoisyGradients {
 public:
  NoisyGradients() {
    parameters_.add("w", {kElements}, Init::zeros());
    parameters_.allocate();
    parameters_.allocate_gradients();
  }
  std::span<float> values() { return parameters_.gradients(); }
  const ParameterList<float>& parameters() const { return parameters_; }

 private:
  ParameterList<float> parameters_;
};

TEST(NoiseScale, IsThatOfTheGradientsItWasGiven) {
  constexpr double kMean = 0.01, kDeviation = 0.5;  // of each element of the gradient of a token
  constexpr double kExpected = kDeviation * kDeviation / (kMean * kMean);
  const std::vector<int64_t> tokens = {100, 700, 300, 1000};
  NoisyGradients gradients;
  NoiseScale scale(gradients.parameters());
  Random random(1, Stream::test);
  double found = 0;
  for (int step = 0; step < 30; step++) {
    Loss sum;
    std::vector<double> all(kElements);
    for (const int64_t t : tokens) {
      const double T = static_cast<double>(t);
      for (size_t i = 0; i < all.size(); i++) {
        gradients.values()[i] = static_cast<float>(kMean * T + kDeviation * std::sqrt(T) * draw_noise(random));
        all[i] += gradients.values()[i];
      }
      sum += Loss{.tokens = t, .gradient_squares = scale.squares_of_shard() / static_cast<double>(t)};
    }
    double squares = 0;
    for (const double x : all) squares += x * x;
    found = scale.add(std::ssize(tokens), sum, std::sqrt(squares) / static_cast<double>(sum.tokens));
  }
  EXPECT_NEAR(found, kExpected, 0.05 * kExpected);
}

TEST(NoiseScale, IsUnknownWithoutASignalAndZeroWithoutNoise) {
  const NoisyGradients gradients;
  // Two shards of one token whose gradients cancel each other, then two that are equal.
  EXPECT_EQ(NoiseScale(gradients.parameters()).add(2, {.tokens = 2, .gradient_squares = 2}, 0), 0);
  EXPECT_EQ(NoiseScale(gradients.parameters()).add(2, {.tokens = 2, .gradient_squares = 2}, 1), 0);
}

TEST(NoiseScale, DoesNotDependOnTheNumberOfThreads) {
  NoisyGradients gradients;
  Random random(2, Stream::test);
  for (float& x : gradients.values()) x = static_cast<float>(draw_noise(random));
  const NoiseScale scale(gradients.parameters());
  const auto squares = [&] { return scale.squares_of_shard(); };
  const double expected = testing::with_threads(1, squares);
  for (const int threads : {2, 3}) EXPECT_EQ(testing::with_threads(threads, squares), expected);
}

}  // namespace
}  // namespace qkv
