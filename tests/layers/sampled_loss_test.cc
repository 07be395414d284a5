// Losses over sampled items: their formulas, their gradients, and the cases in which they are equal.
#include "layers/sampled_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/to_size.h"
#include "ops/logits/cross_entropy.h"
#include "tests/support/numeric.h"
#include "tests/support/spoiled_arena.h"

namespace qkv {
namespace {

constexpr int64_t N = 3, K = 4;  // rows, candidates a row

struct Result {
  std::vector<double> loss, gradient;
};

Result loss_of(ItemLoss kind, double beta, std::vector<double> scores, const std::vector<float>& log_draws) {
  const int64_t rows = std::ssize(scores) / K;
  std::vector<double> loss(to_size(rows));
  sampled_loss<double>(kind, beta, log_draws, Matrix<double>(scores.data(), rows, K), loss.data());
  return {loss, scores};
}

const std::vector<float> kLogDraws = {0, 0.5f, -1, -2, 0, 0.25f, -1, 0, 0, -0.5f, 1, 2};

TEST(SampledLoss, MatchesItsFormula) {
  const std::vector<double> s = {0.5, -1, 2, 0.25};
  const auto log_sigmoid = [](double x) { return -std::log1p(std::exp(-x)); };
  const double negatives = -log_sigmoid(1) - log_sigmoid(-2) - log_sigmoid(-0.25);
  EXPECT_NEAR(loss_of(ItemLoss::bce, 1, s, kLogDraws).loss[0], negatives - log_sigmoid(0.5), 1e-15);
  EXPECT_NEAR(loss_of(ItemLoss::gbce, 0.125, s, kLogDraws).loss[0], negatives - 0.125 * log_sigmoid(0.5), 1e-15);
  const double sum = std::exp(0.5) + std::exp(-1 - 0.5) + std::exp(2.0 + 1) + std::exp(0.25 + 2);
  EXPECT_NEAR(loss_of(ItemLoss::sampled_softmax, 1, s, kLogDraws).loss[0], std::log(sum) - 0.5, 1e-15);
}

TEST(SampledLoss, GradientMatchesFiniteDifferences) {
  for (const ItemLoss kind : {ItemLoss::bce, ItemLoss::gbce, ItemLoss::sampled_softmax}) {
    std::vector<double> s = testing::normal<double>(N * K, 1, 3);
    const Result result = loss_of(kind, 0.3, s, kLogDraws);
    testing::expect_gradient(s, result.gradient, [&] {
      double sum = 0;
      for (const double loss : loss_of(kind, 0.3, s, kLogDraws).loss) sum += loss;
      return sum;
    });
  }
}

TEST(SampledLoss, StaysFiniteForLargeScores) {
  for (const ItemLoss kind : {ItemLoss::bce, ItemLoss::sampled_softmax}) {
    std::vector<float> s = {-1000, 1000, -1000, 1000}, log_draws(4);
    float loss = 0;
    sampled_loss<float>(kind, 1, log_draws, Matrix<float>(s.data(), 1, 4), &loss);
    EXPECT_TRUE(loss >= 2000 && loss <= 3000) << loss;
    for (const float gradient : s) EXPECT_TRUE(std::isfinite(gradient));
  }
}

TEST(SampledLoss, OverAllItemsEqualsTheFullSoftmax) {
  const std::vector<double> s = testing::normal<double>(K, 2);
  std::vector<double> logits = s, loss(1), nll(1);
  cross_entropy_with_gradient<double>(Matrix<double>(logits.data(), 1, K), std::vector<int32_t>{0}, 0, 1, loss.data(),
                                      nll.data());
  const Result result = loss_of(ItemLoss::sampled_softmax, 1, s, std::vector<float>(K));  // each item once
  EXPECT_NEAR(result.loss[0], loss[0], 1e-14);
  EXPECT_LE(testing::max_error(result.gradient, logits), 1e-15);
}

TEST(SampledLoss, CalibrationInterpolatesBetweenBceAndTheSamplingRate) {
  RecommendationConfig config;
  config.loss = ItemLoss::gbce;
  config.negatives = 10;
  config.calibration = 0;
  EXPECT_DOUBLE_EQ(power_of_positives(config, 101), 1);
  config.calibration = 1;
  EXPECT_DOUBLE_EQ(power_of_positives(config, 101), 0.1);
  config.calibration = 0.75;
  EXPECT_DOUBLE_EQ(power_of_positives(config, 101), 0.1 * (0.75 * (1 - 10.0) + 10));
  config.negatives = 1000;  // more draws than items
  EXPECT_DOUBLE_EQ(power_of_positives(config, 101), 1);
  config.loss = ItemLoss::bce;
  config.negatives = 10;
  EXPECT_DOUBLE_EQ(power_of_positives(config, 101), 1);
}

TEST(SampledLoss, GradientsOfStatesAndTableMatchFiniteDifferences) {
  constexpr int64_t V = 6, d = 3;
  ParameterList<double> list;
  const Parameter<double>* table = list.add("items", {V, d}, Init::gaussian(1));
  list.allocate();
  list.allocate_gradients();
  list.initialize(1);
  std::vector<int32_t> ids = {0, 1, 2, 3, 5, 5, 1, 0, 4, 2, 2, 2};
  const Candidates candidates = {{ids.data(), N, K}, kLogDraws};
  std::vector<double> h = testing::normal<double>(N * d, 1), dh(N * d);
  RecommendationConfig config;
  config.loss = ItemLoss::sampled_softmax;
  testing::SpoiledArena arena;
  Context context{arena};
  const auto loss_and_gradient = [&] {
    return sampled_loss_and_gradient<double>(*table, Matrix<double>(h.data(), N, d), candidates, config,
                                             Matrix<double>(dh.data(), N, d), context);
  };
  EXPECT_EQ(loss_and_gradient().tokens, N);
  const std::vector<double> states = dh, weights(list.gradients().begin(), list.gradients().end());
  testing::expect_gradient(h, states, [&] { return loss_and_gradient().loss; });
  testing::expect_gradient(list.values(), weights, [&] { return loss_and_gradient().loss; });
}

}  // namespace
}  // namespace qkv
