// Random vectors and orders of an experiment, and the length of a vector.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/to_size.h"

namespace qkv {

// Numbers of mean 0 and variance 1.
template <class Real>
std::vector<Real> normal_numbers(int64_t count, Random& random) {
  std::vector<Real> numbers(to_size(count));
  std::ranges::generate(numbers, [&] { return static_cast<Real>(random.normal()); });
  return numbers;
}

// √(Σ xᵢ²)
inline double length_of(std::span<const double> x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

// The numbers 0 … count − 1 in random order.
inline std::vector<int32_t> random_order(int64_t count, Random& random) {
  std::vector<int32_t> order(to_size(count));
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  return order;
}

}  // namespace qkv
