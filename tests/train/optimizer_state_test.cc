// Optimizer steps compared with the formulas in float64.
#include "train/optimizer/optimizer_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/to_size.h"
#include "ops/reference/adam_reference.h"
#include "tests/support/numeric.h"
#include "train/optimizer/schedule.h"

namespace qkv {
namespace {

using testing::cast;
using testing::max_error;
using testing::normal;

constexpr int64_t kSize = 37, kTokens = 11;

struct Fixture {
  explicit Fixture(const TrainingConfig& wanted) : config(wanted) {
    parameters.add("w", {kSize}, Init::zeros());
    parameters.allocate();
    parameters.allocate_gradients();
    const std::vector<float> w = normal<float>(kSize, 1);
    std::copy(w.begin(), w.end(), parameters.values().begin());
    optimizer.emplace(config, parameters);
  }
  // Steps with a gradient that is summed over `kTokens` tokens.
  double update(int64_t step, const std::vector<float>& gradient) {
    std::copy(gradient.begin(), gradient.end(), parameters.gradients().begin());
    return optimizer->update(step, kTokens);
  }
  std::vector<float> weights() const { return {parameters.values().begin(), parameters.values().end()}; }

  TrainingConfig config;
  ParameterList<float> parameters;
  std::optional<OptimizerState> optimizer;
};

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// Returns the weights after three steps in float64: mean gradient, clipping, Adam.
std::vector<double> expected(const TrainingConfig& config, int64_t steps) {
  std::vector<double> w = normal<double>(kSize, 1), m(kSize, 0.0), v(kSize, 0.0);
  for (int64_t step = 1; step <= steps; step++) {
    std::vector<double> gradient = normal<double>(kSize, static_cast<uint64_t>(100 + step));
    const double length = norm(cast<float>(gradient)) / kTokens;
    AdamStep s;
    s.learning_rate = learning_rate(config, step);
    s.beta1 = config.beta1, s.beta2 = config.beta2, s.epsilon = config.epsilon;
    s.weight_decay = config.weight_decay;
    s.decoupled = config.optimizer == Optimizer::adamw;
    s.gradient_scale = 1.0 / kTokens;
    if (config.clip_norm > 0 && length > config.clip_norm) s.gradient_scale *= config.clip_norm / length;
    s.step = step;
    reference::adam_update<double>(s, w, gradient, m, v);
  }
  return w;
}

TrainingConfig sample_config() {
  TrainingConfig c;
  c.warmup_steps = 2;
  c.learning_rate = 0.1;
  return c;
}

// Weights of magnitude 4 and steps of magnitude 0.1 in float32, with a few roundings each.
constexpr double kTolerance = 16 * 0x1p-24 * 4;

TEST(OptimizerState, StepIsAdamOnTheMeanGradient) {
  TrainingConfig adamw = sample_config(), clipped = sample_config();
  adamw.optimizer = Optimizer::adamw;
  adamw.weight_decay = 0.1;
  clipped.weight_decay = 0.2;
  clipped.clip_norm = 0.01;
  for (const TrainingConfig& config : {sample_config(), adamw, clipped}) {
    Fixture f(config);
    for (int64_t step = 1; step <= 3; step++) {
      const std::vector<float> gradient = normal<float>(kSize, static_cast<uint64_t>(100 + step));
      EXPECT_NEAR(f.update(step, gradient), norm(gradient) / kTokens, 1e-12);  // before clipping
    }
    EXPECT_LE(max_error(f.weights(), expected(config, 3)), kTolerance);
  }
}

// The first step is computed before its moments are packed, so its weights equal those of float32. Packing changes m by
// at most an eighth and √v by a sixteenth, so the next two steps, at most as large as the learning rate, change as
// much.
TEST(OptimizerState, PackedMomentsGiveAlmostTheSameSteps) {
  TrainingConfig config = sample_config();
  for (const Moments moments : {Moments::bfloat16, Moments::int8}) {
    config.moments = moments;
    Fixture packed(config), again(config);
    for (int64_t step = 1; step <= 3; step++) {
      const std::vector<float> gradient = normal<float>(kSize, static_cast<uint64_t>(100 + step));
      packed.update(step, gradient), again.update(step, gradient);
      if (step == 1) {
        EXPECT_LE(max_error(packed.weights(), expected(config, 1)), kTolerance);
      }
    }
    const double step = config.learning_rate;
    EXPECT_LE(max_error(packed.weights(), expected(config, 3)), 2 * (0.125 + 0.0625) * step + kTolerance);
    EXPECT_EQ(packed.weights(), again.weights());
  }
}

// Two parameters that are trained, around one that is frozen, take the steps that each would take alone.
TEST(OptimizerState, LeavesFrozenParametersAlone) {
  for (const Moments moments : {Moments::float32, Moments::bfloat16, Moments::int8}) {
    TrainingConfig config = sample_config();
    config.moments = moments;
    ParameterList<float> list;
    for (const char* name : {"a", "frozen", "b"}) list.add(name, {kSize}, Init::zeros());
    list.freeze([](const Parameter<float>& p) { return p.name == "frozen"; });
    list.allocate();
    list.allocate_gradients();
    const std::vector<float> w = normal<float>(kSize, 1);
    for (const auto& p : list.all()) std::copy(w.begin(), w.end(), p.value);
    OptimizerState optimizer(config, list);
    Fixture alone(config);
    for (int64_t step = 1; step <= 3; step++) {
      const std::vector<float> gradient = normal<float>(kSize, static_cast<uint64_t>(100 + step));
      for (const auto& p : list.all()) std::copy(gradient.begin(), gradient.end(), p.gradient);
      EXPECT_NEAR(optimizer.update(step, kTokens), std::sqrt(2.0) * norm(gradient) / kTokens, 1e-6);
      alone.update(step, gradient);
    }
    const auto part = [&](std::span<const float> all, int64_t i) {
      return std::vector<float>(all.begin() + i * kSize, all.begin() + (i + 1) * kSize);
    };
    EXPECT_EQ(part(list.values(), 0), alone.weights());
    EXPECT_EQ(part(list.values(), 1), w);
    if (moments == Moments::float32) {
      EXPECT_EQ(part(list.values(), 2), alone.weights());
    }
    EXPECT_LE(max_error(part(list.values(), 2), alone.weights()), 0.4 * config.learning_rate);
    for (const float g : list.gradients()) EXPECT_EQ(g, 0);
    std::vector<float> average(3 * kSize), average_alone(kSize);
    optimizer.average_into(3, average);
    alone.optimizer->average_into(3, average_alone);
    EXPECT_EQ(part(average, 0), average_alone);
    EXPECT_EQ(part(average, 1), w);
  }
}

TEST(OptimizerState, SetsGradientsToZero) {
  Fixture f(sample_config());
  f.update(1, normal<float>(kSize, 2));
  for (const float g : f.parameters.gradients()) EXPECT_EQ(g, 0);
}

TEST(OptimizerState, MovingAverageFollowsTheWeights) {
  Fixture f(sample_config());
  std::vector<double> average = cast<double>(f.weights());
  for (int64_t step = 1; step <= 5; step++) {
    f.update(step, normal<float>(kSize, static_cast<uint64_t>(step)));
    const double decay = (1.0 + static_cast<double>(step)) / (10.0 + static_cast<double>(step));
    for (size_t i = 0; i < average.size(); i++)
      average[i] = decay * average[i] + (1 - decay) * static_cast<double>(f.weights()[i]);
  }
  const std::span<float> ema = f.optimizer->ema();
  EXPECT_LE(max_error(std::vector<float>(ema.begin(), ema.end()), average), kTolerance);
}

TEST(OptimizerState, MovingAverageCanBeTurnedOff) {
  TrainingConfig config = sample_config();
  config.ema_decay = 0;
  Fixture f(config);
  EXPECT_TRUE(f.optimizer->ema().empty());
  f.update(1, normal<float>(kSize, 2));
  EXPECT_LE(max_error(f.weights(), expected(config, 0)), 0.1);  // the first steps of Adam are at most the learning rate
}

// A table of 9 rows and 11 other parameters, with gradients in few rows.
constexpr int64_t kRows = 9, kRowWidth = 5, kOthers = 11;

struct Tables {
  Tables(const TrainingConfig& wanted, bool lazy) : config(wanted) {
    table = parameters.add("table", {kRows, kRowWidth}, Init::zeros());
    parameters.add("others", {kOthers}, Init::zeros());
    parameters.allocate();
    if (!lazy) parameters.allocate_gradients();
    std::ranges::copy(normal<float>(parameters.size(), 1), parameters.values().begin());
    optimizer.emplace(config, parameters, lazy);
  }

  static std::vector<float> gradient_of(int64_t step, std::span<const int32_t> rows) {
    return normal<float>(std::ssize(rows) * kRowWidth + kOthers, static_cast<uint64_t>(step), 0.01);
  }
  double dense_update(int64_t step, std::span<const int32_t> rows) {
    const std::vector<float> gradient = gradient_of(step, rows);
    for (size_t i = 0; i < rows.size(); i++)
      std::copy_n(&gradient[i * kRowWidth], kRowWidth, table->gradient_matrix().row(rows[i]));
    std::copy(gradient.end() - kOthers, gradient.end(), parameters.gradients().end() - kOthers);
    return optimizer->update(step, kTokens);
  }
  double lazy_update(int64_t step, std::span<const int32_t> rows) {
    std::vector<float> gradient = gradient_of(step, rows);
    optimizer->catch_up(step - 1, rows);
    const std::span<float> all = gradient;
    return optimizer->update(step, kTokens,
                             {rows, {all.data(), std::ssize(rows), kRowWidth}, all.last(to_size(kOthers))});
  }
  std::vector<float> weights(int64_t step) {
    std::vector<float> out(parameters.values().size());
    optimizer->weights_into(step, out);
    return out;
  }
  std::vector<float> average(int64_t step) {
    std::vector<float> out(parameters.values().size());
    optimizer->average_into(step, out);
    return out;
  }

  TrainingConfig config;
  ParameterList<float> parameters;
  const Parameter<float>* table;
  std::optional<OptimizerState> optimizer;
};

std::vector<int32_t> rows_of(int64_t step) {
  std::vector<int32_t> rows;
  for (int32_t row = 0; row < kRows - 1; row++)  // the last one never; others every 1, 2, 4, … steps
    if (step % (int64_t{1} << row) == 0) rows.push_back(row);
  return rows;
}

TEST(OptimizerState, LazyRowsTakeTheStepsOfAdam) {
  TrainingConfig cosine = sample_config(), clipped = sample_config(), plain = sample_config();
  cosine.schedule = Schedule::cosine;
  cosine.max_steps = 400;
  clipped.clip_norm = 0.001;
  plain.ema_decay = 0;
  plain.beta2 = 0.999;
  for (const TrainingConfig& config : {cosine, clipped, plain}) {
    Tables dense(config, false), lazy(config, true);
    for (int64_t step = 1; step <= 300; step++) {
      const double norm = dense.dense_update(step, rows_of(step));
      EXPECT_NEAR(lazy.lazy_update(step, rows_of(step)), norm, 1e-6 * norm);
      if (step % 50 > 1) continue;
      const std::vector<float> weights = lazy.weights(step);
      EXPECT_LE(max_error(weights, dense.weights(step)), 1e-4) << "step " << step;  // moves of 0.1 a step
      EXPECT_LE(max_error(lazy.weights(step), weights), 0);                         // catching up changed nothing
      if (config.ema_decay > 0) {
        EXPECT_LE(max_error(lazy.average(step), dense.average(step)), 1e-4) << "step " << step;
      }
    }
  }
}

TEST(OptimizerState, LazyRowsThatAllOccurHaveTheBitsOfAdam) {
  std::vector<int32_t> all(kRows);
  for (int32_t row = 0; row < kRows; row++) all[to_size(row)] = row;
  Tables dense(sample_config(), false), lazy(sample_config(), true);
  for (int64_t step = 1; step <= 20; step++) dense.dense_update(step, all), lazy.lazy_update(step, all);
  EXPECT_EQ(lazy.weights(20), dense.weights(20));
  EXPECT_EQ(lazy.average(20), dense.average(20));
}

TEST(OptimizerState, ABatchWithoutTokensChangesNothing) {
  Fixture f(sample_config());
  const std::vector<float> before = f.weights();
  EXPECT_EQ(f.optimizer->update(1, 0), 0);
  EXPECT_EQ(f.weights(), before);
}

}  // namespace
}  // namespace qkv
