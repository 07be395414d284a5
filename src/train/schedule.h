// The learning rate at a step, counted from 1, and the batches that make it. All rise linearly to the peak over the
// warm-up.
//   inverse_sqrt  lr = peak · min(step / warmup, √(warmup / step)): the paper's d^−½ min(step^−½, step · warmup^−³ᐟ²)
//   with
//                 peak = (d · warmup)^−½
//   constant      lr = peak after the warm-up
//   cosine        after the warm-up lr = peak · (1 + cos(π t)) / 2, t from 0 to 1 at max_steps
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "qkv/train.h"

namespace qkv {

inline double learning_rate(const TrainingConfig& c, int64_t step) {
  const double s = static_cast<double>(step), warmup = static_cast<double>(std::max<int64_t>(c.warmup_steps, 1));
  if (s <= warmup) return c.learning_rate * s / warmup;
  if (c.schedule == Schedule::constant) return c.learning_rate;
  if (c.schedule == Schedule::inverse_sqrt) return c.learning_rate * std::sqrt(warmup / s);
  const double t = std::min(1.0, (s - warmup) / std::max(1.0, static_cast<double>(c.max_steps) - warmup));
  return c.learning_rate * (1 + std::cos(std::numbers::pi * t)) / 2;
}

// The batches that make a step.
inline int64_t batches_of_step(const TrainingConfig& c, int64_t step) {
  if (step >= c.growth_steps) return c.accumulate;
  return 1 + (c.accumulate - 1) * step / c.growth_steps;
}

// The step at which the last of max_epochs ends, for a cosine that says nothing else: epochs of so many batches.
inline void end_by_steps(TrainingConfig& c, int64_t batches) {
  if (c.schedule != Schedule::cosine || c.max_steps > 0) return;
  int64_t left = c.max_epochs * batches, step = 0;
  while (step < c.growth_steps && left >= batches_of_step(c, step + 1)) left -= batches_of_step(c, ++step);
  c.max_steps = std::max<int64_t>(1, step + left / c.accumulate);
}

}  // namespace qkv
