// Catching up on missed steps gives the values of Adam with gradients of zero.
#include "train/optimizer/step_history.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/reference/adam_rows_reference.h"
#include "tests/support/numeric.h"
#include "train/optimizer/schedule.h"

namespace qkv {
namespace {

using testing::max_error;
using testing::normal;

constexpr int64_t kWeights = 8;

struct Row {
  std::vector<double> w = normal<double>(kWeights, 1), m = normal<double>(kWeights, 2, 0.01),
                      v = normal<double>(kWeights, 3, 0.01), average = normal<double>(kWeights, 4);
  Row() {
    for (double& value : v) value = value * value + 1e-6;
  }
};

// Steps last + 1 … step of Adam with gradients of zero.
Row dense(const TrainingConfig& config, int64_t last, int64_t step) {
  Row row;
  for (int64_t s = last + 1; s <= step; s++) {
    std::vector<double> zero(kWeights);
    AdamStep adam;
    adam.learning_rate = learning_rate(config, s);
    adam.beta1 = config.beta1, adam.beta2 = config.beta2, adam.epsilon = config.epsilon;
    adam.step = s;
    adam.average_decay = average_decay(config, s);
    reference::adam_update<double>(adam, row.w, zero, row.m, row.v, row.average);
  }
  return row;
}

TEST(MissedSteps, CatchingUpTakesTheStepsOfAdamWithoutAGradient) {
  for (const double beta2 : {0.95, 0.98, 0.999})
    for (const Schedule schedule : {Schedule::constant, Schedule::cosine, Schedule::inverse_sqrt}) {
      TrainingConfig config;
      config.beta2 = beta2;
      config.schedule = schedule;
      config.max_steps = 5000;
      config.warmup_steps = 20;
      config.learning_rate = 0.1;
      config.epsilon = 1e-14;
      config.ema_decay = 0.998;
      StepHistory history(config);
      for (const auto& [last, step] :
           {std::pair(1, 2), {1, 3}, {5, 45}, {40, 50}, {3, 1000}, {700, 1500}, {10, 5000}}) {
        history.extend(step);
        const Row expected = dense(config, last, step);
        Row found;
        reference::catch_up<double>(history.between(last, step),
                                    {found.w.data(), found.m.data(), found.v.data(), found.average.data()}, kWeights);
        const auto close = [&](const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
          EXPECT_LE(max_error(a, b), tolerance) << "from " << last << " to " << step << ", beta2 " << beta2;
        };
        close(found.w, expected.w, 1e-6);
        close(found.average, expected.average, 1e-6);
        close(found.m, expected.m, 1e-14);
        close(found.v, expected.v, 1e-14);
      }
    }
}

TEST(MissedSteps, WithoutAMovingAverageOnlyTheRowMoves) {
  TrainingConfig config;
  config.ema_decay = 0;
  StepHistory history(config);
  history.extend(30);
  const MissedSteps missed = history.between(4, 30);
  EXPECT_GT(missed.moved, 0);
  EXPECT_EQ(missed.kept, 1);
  EXPECT_EQ(missed.average_moved, 0);
}

}  // namespace
}  // namespace qkv
