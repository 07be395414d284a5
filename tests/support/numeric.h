// Shared by the numerical tests: random data, the error of float32 against float64, and finite differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/to_size.h"

namespace qkv::testing {

// n numbers of mean 0 and variance 1, the same for the same seed; each is a float32 value, so that float and double
// versions of an op start from equal inputs.
template <class Real>
std::vector<Real> normal(int64_t n, uint64_t seed, double scale = 1) {
  Random random(seed, Stream::test);
  std::vector<Real> x(to_size(n));
  for (Real& value : x) value = static_cast<Real>(static_cast<float>(scale * random.normal()));
  return x;
}

template <class To, class From>
std::vector<To> cast(const std::vector<From>& x) {
  return {x.begin(), x.end()};
}

// max |a − b|; infinite if one is NaN and the other is not.
template <class A, class B>
double max_error(const std::vector<A>& a, const std::vector<B>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++) {
    const double error = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(error <= worst) && !(std::isnan(a[i]) && std::isnan(b[i])) && a[i] != b[i])
      worst = std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

// ‖a − b‖ / ‖b‖
template <class A, class B>
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / (size > 0 ? size : 1));
}

// Compares gradient[i] with the central difference of f in x[i], for every i (or every `every`-th), in float64, by
// the relative error of the whole vector. f reads x where it lies.
inline void expect_gradient(std::span<double> x, std::span<const double> gradient, const std::function<double()>& f,
                            double tolerance = 1e-6, size_t every = 1, double h = 1e-5) {
  std::vector<double> numeric, analytic;
  for (size_t i = 0; i < x.size(); i += every) {
    const double kept = x[i];
    x[i] = kept + h;
    const double above = f();
    x[i] = kept - h;
    const double below = f();
    x[i] = kept;
    numeric.push_back((above - below) / (2 * h));
    analytic.push_back(gradient[i]);
  }
  EXPECT_LE(relative_error(analytic, numeric), tolerance);
}

}  // namespace qkv::testing
