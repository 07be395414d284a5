// Computations of the lanes of a warp together. All of them must call these functions.
#pragma once

#include <cstdint>

#include "grid.h"

namespace qkv::cuda {

constexpr unsigned kAllLanes = 0xFFFFFFFF;

// Returns the sum of the numbers of all lanes, which every lane adds in the same order.
template <class Real>
__device__ Real warp_sum(Real x) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(kAllLanes, x, lanes);
  return x;
}

// Returns the larger number; NaN if one is.
__device__ inline float larger(float a, float b) { return a > b || a != a ? a : b; }

__device__ inline float warp_max(float x) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) x = larger(x, __shfl_xor_sync(kAllLanes, x, lanes));
  return x;
}

// Calls f(i) for all i in [0, count) with ids[i] = id, in increasing order. So the sum of the rows of an id is computed
// by one warp, in the order of the rows.
template <class F>
__device__ void for_each_match(const int32_t* ids, int64_t count, int64_t id, F&& f) {
  for (int64_t begin = 0; begin < count; begin += kLanes) {
    const int64_t mine = begin + lane_number();
    unsigned matches = __ballot_sync(kAllLanes, mine < count && ids[mine] == id);
    for (; matches; matches &= matches - 1) f(begin + __ffs(static_cast<int>(matches)) - 1);
  }
}

}  // namespace qkv::cuda
