// The part of CUDA C++ that kernels use, for a CPU: plugins/cuda/gpu/launch.h has the same for a GPU. Qualifiers are
// empty, coordinates are variables, and collective functions are calls of the emulator (block.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <tuple>

#include "block.h"

#define __global__
#define __device__
#define __shared__ static  // one block runs at a time

namespace qkv::cuda {

// Runs a kernel in blocks of `threads`, which is a multiple of 32. Throws if threads of a block wait for each other
// forever.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, const Arguments&... arguments) {
  const std::tuple<Parameters...> values(arguments...);
  emulator::run_blocks(blocks, threads, [&] { std::apply(kernel, values); });
}

}  // namespace qkv::cuda

using qkv::cuda::emulator::blockDim;
using qkv::cuda::emulator::blockIdx;
using qkv::cuda::emulator::threadIdx;

inline void __syncthreads() { qkv::cuda::emulator::wait_for_block(); }
inline void __syncwarp() { qkv::cuda::emulator::exchange(qkv::cuda::emulator::Collective::sync, {}); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int lane_mask) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const qkv::cuda::emulator::Lanes& lanes =
      qkv::cuda::emulator::exchange(qkv::cuda::emulator::Collective::shuffle, {bits});
  std::memcpy(&value, lanes[(threadIdx.x % 32) ^ static_cast<unsigned>(lane_mask)].data(), sizeof value);
  return value;
}

inline unsigned __ballot_sync(unsigned, int predicate) {
  const qkv::cuda::emulator::Lanes& lanes =
      qkv::cuda::emulator::exchange(qkv::cuda::emulator::Collective::ballot, {predicate != 0});
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; lane++) votes |= static_cast<unsigned>(lanes[lane][0]) << lane;
  return votes;
}

inline int __ffs(int bits) { return __builtin_ffs(bits); }
