// Tiles of bfloat16 factors in shared memory, as matrix instructions read them.
#pragma once

#include "factor.h"
#include "grid.h"
#include "matrix_instructions.h"

namespace qkv::cuda::tiles {

constexpr int kPiece = 8;                                      // elements that are copied at once
constexpr int kPartRows = 16, kPartCols = 8, kPartDepth = 16;  // of an instruction

// The row and the column of number e of a lane in the result of an instruction.
__device__ inline int part_row(int e) { return lane_number() / 4 + e / 2 * 8; }
__device__ inline int part_col(int e) { return lane_number() % 4 * 2 + e % 2; }

// Whether pieces of the factor are at multiples of 16 bytes.
template <bool kTransposed>
__device__ bool is_aligned(const Factor<bfloat16, kTransposed>& f) {
  return reinterpret_cast<uintptr_t>(f.data) % 16 == 0 && f.stride % kPiece == 0;
}

// Some rows of a factor and kDepth numbers of each, in shared memory. A line has elements that are adjacent in the
// memory of the factor: of a row or, where kTransposed, of a column. Its pieces are permuted, so that the eight lines
// that an instruction loads at a time are in different banks.
template <int kRows, int kDepth, bool kTransposed>
struct alignas(16) Tile {
  static constexpr int kLines = kTransposed ? kDepth : kRows, kPieces = (kTransposed ? kRows : kDepth) / kPiece;
  uint16_t numbers[kRows * kDepth];

  __device__ uint16_t* piece(int line, int i) {
    const int permuted = i ^ (kPieces >= 8 ? line % 8 : line / 2 % 4);
    return numbers + (line * kPieces + permuted) * kPiece;
  }

  // Begins to load the numbers of rows from `row` on, [k, end) of each. Zeros are outside of the factor.
  template <int kThreads>
  __device__ void begin_to_load(Factor<bfloat16, kTransposed> factor, int64_t row, int64_t k, int64_t end) {
    const bool aligned = is_aligned(factor);
    for (int i = static_cast<int>(threadIdx.x); i < kLines * kPieces; i += kThreads) {
      const int line = i / kPieces, first = i % kPieces * kPiece;
      const int64_t r = row + (kTransposed ? first : line), c = k + (kTransposed ? line : first);
      const int64_t left = r < factor.rows && c < end ? (kTransposed ? factor.rows - r : end - c) : 0;
      const bfloat16* const from = left > 0 ? factor.place(r, c) : factor.data;
      uint16_t* const to = piece(line, i % kPieces);
      if (aligned) {
        copy_async(to, from, static_cast<int>(left < kPiece ? left : kPiece) * int{sizeof(bfloat16)});
      } else {
        for (int e = 0; e < kPiece; e++) to[e] = e < left ? from[e].bits : 0;
      }
    }
  }

  // Loads a left factor of an instruction: 16 rows.
  __device__ void load_left(int row, int k, uint32_t (&to)[4]) {
    load(row + lane_number() / 8 % 2 * 8, k + lane_number() / 16 * 8, to);
  }
  // Loads the right factors of two instructions: 8 rows each.
  __device__ void load_right(int row, int k, uint32_t (&to)[4]) {
    load(row + lane_number() / 16 * 8, k + lane_number() / 8 % 2 * 8, to);
  }

 private:
  // Loads four matrices of 8 rows and 8 numbers. `row` and `k` are the first ones of matrix lane / 8.
  __device__ void load(int row, int k, uint32_t (&to)[4]) {
    const int line = lane_number() % 8;
    load_matrices<kTransposed>(to, kTransposed ? piece(k + line, row / kPiece) : piece(row + line, k / kPiece));
  }
};

}  // namespace qkv::cuda::tiles
