// The learning rate of each step and the number of batches that make a step. Steps count from 1. The learning rate
// rises linearly to its peak during the warm-up, then follows the schedule:
//   inverse_sqrt  lr = peak · min(step / warmup, √(warmup / step)); with peak = (d · warmup)^−½ this is the formula of
//                 Vaswani et al. (2017), section 5.3: d^−½ min(step^−½, step · warmup^−3/2)
//   constant      lr = peak
//   cosine        lr = peak · (1 + cos(π t)) / 2, where t rises from 0 to 1 at max_steps
// In the last part of training, the cooldown, it is multiplied by a factor that falls linearly to 0: Zhai et al.,
// "Scaling Vision Transformers" (2022), section 3.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/fail.h"
#include "qkv/training.h"

namespace qkv {

// Returns the learning rate of a step.
inline double learning_rate(const TrainingConfig& c, int64_t step) {
  const double s = static_cast<double>(step), warmup = static_cast<double>(std::max<int64_t>(c.warmup_steps, 1));
  if (s <= warmup) return c.learning_rate * s / warmup;
  if (c.schedule == Schedule::constant) return c.learning_rate;
  if (c.schedule == Schedule::inverse_sqrt) return c.learning_rate * std::sqrt(warmup / s);
  const double t = std::min(1.0, (s - warmup) / std::max(1.0, static_cast<double>(c.max_steps) - warmup));
  return c.learning_rate * (1 + std::cos(std::numbers::pi * t)) / 2;
}

// Returns the factor of the learning rate when a part of training is done, from 0 to 1: during the cooldown it falls
// linearly to 0.
inline double cooldown_factor(const TrainingConfig& c, double done) {
  return c.cooldown > 0 ? std::clamp((1 - done) / c.cooldown, 0.0, 1.0) : 1;
}

// Returns the decay of the moving average in a step. At first the average follows the weights closely.
inline double average_decay(const TrainingConfig& c, int64_t step) {
  const double n = static_cast<double>(step);
  return std::min(c.ema_decay, (1 + n) / (10 + n));
}

// Returns the number of batches of each shard of a step.
inline int64_t batches_of_step(const TrainingConfig& c, int64_t step) {
  if (step >= c.growth_steps) return c.accumulate;
  return 1 + (c.accumulate - 1) * step / c.growth_steps;
}

// Throws Error for a cosine schedule without an end. counts_batches: whether the number of batches of an epoch is known
// before training, so that max_epochs is an end too.
inline void check_schedule(const TrainingConfig& c, bool counts_batches) {
  if (c.schedule != Schedule::cosine || c.max_steps > 0 || (counts_batches && c.max_epochs > 0)) return;
  fail("training: schedule cosine needs max_steps{}, where the learning rate reaches 0",
       counts_batches ? " or max_epochs" : "");
}

// Returns the number of batch i of shard s of a step. Its dropout masks depend on it.
inline uint32_t batch_number(const TrainingConfig& c, int64_t step, int64_t shard, int64_t i) {
  return static_cast<uint32_t>(((step - 1) * c.shards + shard) * c.accumulate + i);
}

// Returns whether a step is a multiple of `every`; of 0, none is.
inline bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

// The last step of a run: states hold for each row the step that changed it last, as an int32.
inline constexpr int64_t kLastStep = std::numeric_limits<int32_t>::max();

// Throws Error unless `step` can be the last of a run, and all batches of the steps up to it have different numbers.
inline void check_last_step(const TrainingConfig& c, int64_t step) {
  constexpr int64_t kNumbers = int64_t{1} << 32;
  if (step > kLastStep) fail("training: {} steps are more than the {} of a run", step, kLastStep);
  if (step > kNumbers / c.accumulate / c.shards)
    fail("training: {} steps with shards {} and accumulate {} are more than 2^32 batches", step, c.shards,
         c.accumulate);
}

// Sets max_steps of a cosine schedule that has none to the step that ends max_epochs epochs of `batches` batches.
inline void set_cosine_end(TrainingConfig& c, int64_t batches) {
  if (c.schedule != Schedule::cosine || c.max_steps > 0) return;
  int64_t left = c.max_epochs * batches / c.shards, step = 0;  // batches of a shard
  while (step < c.growth_steps && left >= batches_of_step(c, step + 1)) left -= batches_of_step(c, ++step);
  c.max_steps = std::max<int64_t>(1, step + left / c.accumulate);
}

}  // namespace qkv
