// Instructions for tiles of matrices, for a CPU: plugins/cuda/gpu/matrix_instructions.h has the same for a GPU.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>

#include "launch.h"
#include "qkv/bfloat16.h"

namespace qkv::cuda {

namespace emulator {

// Keeps a copy of the running thread until it waits for it.
void keep_copy(void* to, const void* from, int bytes);
void end_copies();
// Does all copies of the thread but those of the last `left` groups.
void do_copies(int left);

// Returns one of four elements of bfloat16.
inline float element(uint64_t four, int i) { return std::bit_cast<float>(static_cast<uint32_t>(four >> 16 * i) << 16); }

}  // namespace emulator

inline void copy_async(void* shared, const void* from, int bytes) {
  if ((reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(from)) % 16 != 0 || bytes < 0 || bytes > 16)
    throw std::logic_error("a copy to shared memory is not of 16 aligned bytes");
  emulator::keep_copy(shared, from, bytes);
}
inline void end_copies() { emulator::end_copies(); }
template <int kLeft>
void wait_for_copies() {
  emulator::do_copies(kLeft);
}

template <bool kTransposed>
void load_matrices(uint32_t (&to)[4], const uint16_t* row) {
  const emulator::Lanes& rows = emulator::exchange(emulator::Collective::load, {reinterpret_cast<uintptr_t>(row)});
  const unsigned lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;
  for (unsigned j = 0; j < 4; j++) {
    const auto at = [&](unsigned i, unsigned k) {
      return reinterpret_cast<const uint16_t*>(rows[8 * j + (kTransposed ? k : i)][0])[kTransposed ? i : k];
    };
    to[j] = at(r, c) | static_cast<uint32_t>(at(r, c + 1)) << 16;
  }
}

inline uint32_t pair_of(float first, float second) {
  return bfloat16(first).bits | static_cast<uint32_t>(bfloat16(second).bits) << 16;
}

inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  // Four elements each: of a row of A, of the row 8 below, and of a row of B. Two are of the first half of columns.
  const emulator::Lanes& lanes =
      emulator::exchange(emulator::Collective::multiply,
                         {a[0] | uint64_t{a[2]} << 32, a[1] | uint64_t{a[3]} << 32, b[0] | uint64_t{b[1]} << 32});
  const unsigned lane = threadIdx.x % 32, row = lane / 4 * 4, col = lane % 4 * 8;
  float sums[4] = {};
  for (unsigned k = 0; k < 16; k++) {
    const unsigned from = k % 8 / 2;
    const int place = static_cast<int>(k / 8 * 2 + k % 2);  // of the four
    for (unsigned i = 0; i < 4; i++)
      sums[i] += emulator::element(lanes[row + from][i / 2], place) *
                 emulator::element(lanes[col + i % 2 * 4 + from][2], place);
  }
  for (unsigned i = 0; i < 4; i++) c[i] += sums[i];
}

}  // namespace qkv::cuda
