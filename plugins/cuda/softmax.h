// The logarithm of a sum of exponentials, by a warp.
#pragma once

#include <cmath>
#include <limits>

#include "warp.h"

namespace qkv::cuda {

// Returns log Σ_v exp(x(v)) over v in [0, count). The largest x(v) may be infinite.
template <class Numbers>
__device__ float log_sum_exp(int64_t count, Numbers&& x) {
  float largest = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int64_t v = lane_number(); v < count; v += kLanes) largest = larger(largest, x(v));
  largest = warp_max(largest);
  for (int64_t v = lane_number(); v < count; v += kLanes) sum += x(v) == largest ? 1 : std::exp(x(v) - largest);
  return largest + std::log(warp_sum(sum));
}

}  // namespace qkv::cuda
