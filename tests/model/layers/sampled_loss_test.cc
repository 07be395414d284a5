// Losses over sampled items: their formulas, their gradients, and the cases in which they are equal.
#include "model/layers/sampled_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/to_size.h"
#include "ops/cross_entropy.h"
#include "tests/support/kernels.h"
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
  sampled_loss<double>({kind, beta}, log_draws, Matrix<double>(scores.data(), rows, K), loss.data());
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
    sampled_loss<float>({kind}, log_draws, Matrix<float>(s.data(), 1, 4), &loss);
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
  const auto beta = [&] { return SampledLoss::of(config, 101).beta; };
  config.calibration = 0;
  EXPECT_DOUBLE_EQ(beta(), 1);
  config.calibration = 1;
  EXPECT_DOUBLE_EQ(beta(), 0.1);
  config.calibration = 0.75;
  EXPECT_DOUBLE_EQ(beta(), 0.1 * (0.75 * (1 - 10.0) + 10));
  config.negatives = 1000;  // more draws than items
  EXPECT_DOUBLE_EQ(beta(), 1);
  config.loss = ItemLoss::bce;
  config.negatives = 10;
  EXPECT_DOUBLE_EQ(beta(), 1);
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
  testing::SpoiledArena arena;
  Context context{arena};
  const auto loss_and_gradient = [&] {
    return sampled_loss_and_gradient<double>(*table, Matrix<double>(h.data(), N, d), candidates,
                                             {ItemLoss::sampled_softmax}, Matrix<double>(dh.data(), N, d), context);
  };
  EXPECT_EQ(loss_and_gradient().tokens, N);
  const std::vector<double> states = dh, weights(list.gradients().begin(), list.gradients().end());
  testing::expect_gradient(h, states, [&] { return loss_and_gradient().loss; });
  testing::expect_gradient(list.values(), weights, [&] { return loss_and_gradient().loss; });
}

// Rows against negatives that all of them share.
template <class Real>
struct Shared {
  Shared(int64_t rows, int64_t negatives, int64_t items, int64_t width, ItemLoss loss)
      : kind{loss, loss == ItemLoss::gbce ? 0.3 : 1}, table(list.add("items", {items, width}, Init::gaussian(1))) {
    list.allocate();
    list.allocate_gradients();
    list.initialize(1);
    Random random(4, Stream::test);
    const auto fill = [&](std::vector<int32_t>& to, int64_t count) {
      for (int64_t i = 0; i < count; i++)
        to.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(items))));
    };
    fill(labels, rows), fill(ids, negatives);
    std::ranges::sort(ids);
    log_draws = testing::normal<float>(negatives, 5);
    h = testing::normal<Real>(rows * width, 6);
    dh.resize(h.size());
  }

  Loss loss_and_gradient() {
    Context context{arena};
    const int64_t rows = std::ssize(labels), width = table->shape[1];
    return shared_loss_and_gradient<Real>(*table, Matrix<Real>(h.data(), rows, width), labels, {ids, log_draws}, kind,
                                          Matrix<Real>(dh.data(), rows, width), context);
  }

  // The same, row by row: the label and the negatives that differ from it.
  Loss row_by_row(std::vector<Real>& states) {
    Context context{arena};
    const int64_t width = table->shape[1];
    Loss total;
    states.resize(h.size());
    for (int64_t n = 0; n < std::ssize(labels); n++) {
      std::vector<int32_t> row = {labels[to_size(n)]};
      std::vector<float> draws = {0};
      for (size_t k = 0; k < ids.size(); k++)
        if (ids[k] != row[0]) row.push_back(ids[k]), draws.push_back(log_draws[k]);
      const Candidates candidates = {{row.data(), 1, std::ssize(row)}, draws};
      total += sampled_loss_and_gradient<Real>(*table, Matrix<Real>(h.data() + n * width, 1, width), candidates, kind,
                                               Matrix<Real>(states.data() + n * width, 1, width), context);
    }
    return total;
  }

  std::vector<Real> gradient() const { return {list.gradients().begin(), list.gradients().end()}; }

  SampledLoss kind;
  ParameterList<Real> list;
  const Parameter<Real>* table;
  std::vector<int32_t> labels, ids;
  std::vector<float> log_draws;
  std::vector<Real> h, dh;
  testing::SpoiledArena arena;
};

constexpr ItemLoss kSampled[] = {ItemLoss::sampled_softmax, ItemLoss::bce, ItemLoss::gbce};

TEST(SharedLoss, EqualsTheLossOfEachRowWithoutItsLabelAmongTheNegatives) {
  for (const ItemLoss loss : kSampled) {
    for (const auto& [rows, negatives, items] : {std::tuple(5, 1, 3), {7, 9, 6}, {600, 40, 30}}) {
      Shared<double> shared(rows, negatives, items, 4, loss), plain(rows, negatives, items, 4, loss);
      std::vector<double> states;
      const Loss fast = shared.loss_and_gradient(), slow = plain.row_by_row(states);
      EXPECT_NEAR(fast.loss, slow.loss, 1e-12 * slow.loss);
      EXPECT_EQ(fast.tokens, rows);
      EXPECT_LE(testing::max_error(shared.dh, states), 1e-12);
      EXPECT_LE(testing::max_error(shared.gradient(), plain.gradient()), 1e-11);

      Shared<float> single(rows, negatives, items, 4, loss);
      EXPECT_NEAR(single.loss_and_gradient().loss, slow.loss, 1e-5 * slow.loss);
      EXPECT_LE(testing::max_error(single.dh, states), 1e-4);
      EXPECT_LE(testing::max_error(single.gradient(), plain.gradient()), 1e-3);
    }
  }
}

TEST(SharedLoss, GradientsMatchFiniteDifferences) {
  for (const ItemLoss loss : kSampled) {
    Shared<double> shared(4, 6, 7, 3, loss);
    shared.loss_and_gradient();
    const std::vector<double> states = shared.dh, weights = shared.gradient();
    testing::expect_gradient(shared.h, states, [&] { return shared.loss_and_gradient().loss; });
    testing::expect_gradient(shared.list.values(), weights, [&] { return shared.loss_and_gradient().loss; });
  }
}

TEST(SharedLoss, WithoutANegativeThatDiffersFromTheLabelIsThatOfTheLabel) {
  Shared<float> softmax(1, 3, 1, 2, ItemLoss::sampled_softmax), bce(1, 3, 1, 2, ItemLoss::bce);
  EXPECT_EQ(softmax.loss_and_gradient().loss, 0);
  for (const float gradient : softmax.gradient()) EXPECT_EQ(gradient, 0);
  std::vector<float> states;
  EXPECT_FLOAT_EQ(static_cast<float>(bce.loss_and_gradient().loss), static_cast<float>(bce.row_by_row(states).loss));
}

TEST(SharedLoss, DoesNotDependOnTheNumberOfThreads) {
  for (const ItemLoss loss : kSampled) {
    const auto results = [&] {
      Shared<float> shared(700, 100, 300, 20, loss);
      std::vector<float> all = {static_cast<float>(shared.loss_and_gradient().loss)};
      all.insert(all.end(), shared.dh.begin(), shared.dh.end());
      all.insert(all.end(), shared.list.gradients().begin(), shared.list.gradients().end());
      return all;
    };
    EXPECT_EQ(testing::with_threads(1, results), testing::with_threads(3, results));
  }
}

}  // namespace
}  // namespace qkv
