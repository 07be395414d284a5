// Adam, the moving average and the sum of squares, element by element.
#pragma once

#include <cmath>
#include <span>

#include "ops/adam.h"

namespace qkv::reference {

// The factors of a step, which are the same for all elements.
template <class Real>
struct AdamFactors {
  explicit AdamFactors(const AdamStep& step)
      : scale(static_cast<Real>(step.gradient_scale)),
        rate(static_cast<Real>(step.learning_rate)),
        epsilon(static_cast<Real>(step.epsilon)),
        beta1(static_cast<Real>(step.beta1)),
        beta2(static_cast<Real>(step.beta2)),
        rest1(static_cast<Real>(1 - step.beta1)),
        rest2(static_cast<Real>(1 - step.beta2)),
        correction1(static_cast<Real>(1 - std::pow(step.beta1, static_cast<double>(step.step)))),
        correction2(static_cast<Real>(1 - std::pow(step.beta2, static_cast<double>(step.step)))),
        coupled(static_cast<Real>(step.decoupled ? 0 : step.weight_decay)),
        decoupled(static_cast<Real>(step.decoupled ? step.weight_decay : 0)),
        kept(static_cast<Real>(step.average_decay)),
        rest(static_cast<Real>(1 - step.average_decay)) {}

  Real scale, rate, epsilon, beta1, beta2;
  Real rest1, rest2;              // 1 − β
  Real correction1, correction2;  // 1 − β^step
  Real coupled, decoupled;        // weight decay
  Real kept, rest;                // of the average
};

// Updates one weight. `average` may be null.
template <class Real>
constexpr void adam_element(const AdamFactors<Real>& f, Real& w, Real& gradient, Real& m, Real& v, Real* average) {
  const Real g = f.scale * gradient + f.coupled * w;
  m = f.beta1 * m + f.rest1 * g;
  v = f.beta2 * v + f.rest2 * g * g;
  const Real direction = (m / f.correction1) / (std::sqrt(v / f.correction2) + f.epsilon);
  w -= f.rate * (direction + f.decoupled * w);
  gradient = 0;
  if (average) *average = f.kept * *average + f.rest * w;
}

template <class Real>
void adam_update(const AdamStep& step, std::span<Real> w, std::span<Real> gradient, std::span<Real> m,
                 std::span<Real> v, std::span<Real> average = {}) {
  const AdamFactors<Real> factors(step);
  for (size_t i = 0; i < w.size(); i++)
    adam_element(factors, w[i], gradient[i], m[i], v[i], average.empty() ? nullptr : &average[i]);
}

template <class Real>
double sum_of_squares(std::span<const Real> x) {
  double sum = 0;
  for (const Real value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

}  // namespace qkv::reference
