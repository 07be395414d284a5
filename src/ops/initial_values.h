// Initial values of parameters.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/random.h"

namespace qkv {

// The initial value of each element: `mean`, plus uniform noise in [−uniform, uniform], plus normal noise with standard
// deviation `normal`.
struct Init {
  double mean = 0, uniform = 0, normal = 0;

  // Keeps the variance of activations and of gradients: Glorot, Bengio (2010).
  static Init xavier(int64_t in, int64_t out) { return {0, std::sqrt(6.0 / static_cast<double>(in + out)), 0}; }
  static Init zeros() { return {}; }
  static Init ones() { return {1, 0, 0}; }
  static Init gaussian(double deviation) { return {0, 0, deviation}; }
};

// Assigns `count` values, one after the other, on the calling thread.
template <class Real>
void initial_values(const Init& init, Random random, Real* values, int64_t count);

}  // namespace qkv
