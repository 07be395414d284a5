// The numbers that all parameters share in a step of Adam, computed once.
#pragma once

#include <cmath>

#include "ops/adam.h"

namespace qkv {

constexpr int64_t kAdamBlock = 16384;  // parameters that a thread takes at a time

struct AdamFactors {
  float scale, coupled;  // g = scale · gradient + coupled · w
  float beta1, rest1;    // β1, 1 − β1
  float beta2, rest2;
  float rate, correction2, epsilon;  // η / (1 − β1^t), 1 / (1 − β2^t), ε
  float shrink;                      // η λ of decoupled decay
  float kept, rest;                  // decay of the moving average, and what is left

  explicit AdamFactors(const AdamStep& s)
      : scale(to_float(s.gradient_scale)),
        coupled(to_float(s.decoupled ? 0 : s.weight_decay)),
        beta1(to_float(s.beta1)),
        rest1(to_float(1 - s.beta1)),
        beta2(to_float(s.beta2)),
        rest2(to_float(1 - s.beta2)),
        rate(to_float(s.learning_rate / (1 - std::pow(s.beta1, static_cast<double>(s.step))))),
        correction2(to_float(1 / (1 - std::pow(s.beta2, static_cast<double>(s.step))))),
        epsilon(to_float(s.epsilon)),
        shrink(to_float(s.decoupled ? s.learning_rate * s.weight_decay : 0)),
        kept(to_float(s.average_decay)),
        rest(to_float(1 - s.average_decay)) {}

 private:
  static float to_float(double x) { return static_cast<float>(x); }
};

}  // namespace qkv
