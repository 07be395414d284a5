// Adam, the moving average and the sum of squares, element by element.
#pragma once

#include <cmath>
#include <span>

#include "ops/adam.h"

namespace qkv::reference {

template <class Real>
void adam_update(const AdamStep& step, std::span<Real> w, std::span<Real> gradient, std::span<Real> m,
                 std::span<Real> v, std::span<Real> average = {}) {
  const double t = static_cast<double>(step.step);
  const Real beta1 = static_cast<Real>(step.beta1), beta2 = static_cast<Real>(step.beta2);
  const Real rest1 = static_cast<Real>(1 - step.beta1), rest2 = static_cast<Real>(1 - step.beta2);  // 1 − β
  const Real correction1 = static_cast<Real>(1 - std::pow(step.beta1, t));                          // 1 − β^step
  const Real correction2 = static_cast<Real>(1 - std::pow(step.beta2, t));
  const Real coupled = static_cast<Real>(step.decoupled ? 0 : step.weight_decay);
  const Real decoupled = static_cast<Real>(step.decoupled ? step.weight_decay : 0);
  const Real kept = static_cast<Real>(step.average_decay), rest = static_cast<Real>(1 - step.average_decay);
  for (size_t i = 0; i < w.size(); i++) {
    const Real g = static_cast<Real>(step.gradient_scale) * gradient[i] + coupled * w[i];
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    const Real direction = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + static_cast<Real>(step.epsilon));
    w[i] -= static_cast<Real>(step.learning_rate) * (direction + decoupled * w[i]);
    gradient[i] = 0;
    if (!average.empty()) average[i] = kept * average[i] + rest * w[i];
  }
}

template <class Real>
double sum_of_squares(std::span<const Real> x) {
  double sum = 0;
  for (const Real value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

}  // namespace qkv::reference
