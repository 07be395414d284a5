// The threads of a kernel: one for each element of a matrix, or a warp for each row or other piece of work.
#pragma once

#include <cstdint>

#include "launch.h"

namespace qkv::cuda {

constexpr int kLanes = 32, kWarps = 8, kThreads = kWarps * kLanes;  // of a block

// The element of a thread. Threads beyond the last one have none.
struct Place {
  int64_t row, col;
  bool inside;
};
__device__ inline Place place_in(int64_t rows, int64_t cols) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  return {i / cols, i % cols, i < rows * cols};
}

// Returns the number of the warp. There may be warps beyond the last piece of work.
__device__ inline int64_t warp_number() { return int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes; }
__device__ inline int lane_number() { return static_cast<int>(threadIdx.x % kLanes); }

constexpr int64_t blocks_for(int64_t work, int64_t each) { return (work + each - 1) / each; }

// Runs a thread for each element of a matrix of this shape.
template <class... Parameters, class... Arguments>
void launch_elements(int64_t rows, int64_t cols, void (*kernel)(Parameters...), const Arguments&... arguments) {
  launch(kernel, blocks_for(rows * cols, kThreads), kThreads, arguments...);
}

// Runs `count` warps.
template <class... Parameters, class... Arguments>
void launch_warps(int64_t count, void (*kernel)(Parameters...), const Arguments&... arguments) {
  launch(kernel, blocks_for(count, kWarps), kThreads, arguments...);
}

}  // namespace qkv::cuda
