// Products of bfloat16 factors by matrix instructions, with sums in float32.
//
// Σ_k is the sum of chunks of 512 numbers, in order; a chunk is added up by instructions of 16 numbers, in order. So
// the bits of a number depend on its row, its column and K alone, and not on the tile that it is in, nor on whether one
// block or several have computed its chunks. An instruction gives each number the same bits wherever it is in its tile.
#pragma once

#include <algorithm>

#include "runtime.h"
#include "tile.h"

namespace qkv::cuda {
namespace tiles {

constexpr int kDepth = 32;   // numbers of K that are in shared memory at a time
constexpr int kStages = 3;   // places for them: one is read while others are filled
constexpr int kChunk = 512;  // numbers of K that are added up by instructions alone

// The tile of a block: kWarpRows × kWarpCols warps, each with kRowParts × kColParts results of instructions.
template <int kWarpRows, int kWarpCols, int kRowParts_, int kColParts_>
struct Shape {
  static constexpr int kRowParts = kRowParts_, kColParts = kColParts_;
  static constexpr int kRowsOfWarp = kRowParts * kPartRows, kColsOfWarp = kColParts * kPartCols;
  static constexpr int kRows = kWarpRows * kRowsOfWarp, kCols = kWarpCols * kColsOfWarp;
  static constexpr int kThreads = kWarpRows * kWarpCols * kLanes;

  // The first row and column of the warp.
  __device__ static int row() { return static_cast<int>(threadIdx.x) / kLanes / kWarpCols * kRowsOfWarp; }
  __device__ static int col() { return static_cast<int>(threadIdx.x) / kLanes % kWarpCols * kColsOfWarp; }
};
using Large = Shape<2, 4, 4, 4>;   // 128 × 128
using Medium = Shape<2, 2, 2, 4>;  // 64 × 64
using Narrow = Shape<1, 4, 1, 2>;  // 16 × 64

// Sums of a lane, of each of the instructions of its warp.
template <class Shape>
using Sums = float[Shape::kRowParts][Shape::kColParts][4];

// sums += a bᵀ
template <class Shape, class A, class B>
__device__ void multiply(A& a, B& b, Sums<Shape>& sums) {
  for (int k = 0; k < kDepth; k += kPartDepth) {
    uint32_t rows[Shape::kRowParts][4], cols[Shape::kColParts / 2][4];
    for (int i = 0; i < Shape::kRowParts; i++) a.load_left(Shape::row() + i * kPartRows, k, rows[i]);
    for (int j = 0; j < Shape::kColParts / 2; j++) b.load_right(Shape::col() + 2 * j * kPartCols, k, cols[j]);
    for (int i = 0; i < Shape::kRowParts; i++)
      for (int j = 0; j < Shape::kColParts; j++)
        multiply_add(sums[i][j], rows[i], {cols[j / 2][j % 2 * 2], cols[j / 2][j % 2 * 2 + 1]});
  }
}

// total += sums; sums = 0
template <class Shape>
__device__ void add_chunk(Sums<Shape>& sums, Sums<Shape>& total) {
  for (int i = 0; i < Shape::kRowParts; i++)
    for (int j = 0; j < Shape::kColParts; j++)
      for (int e = 0; e < 4; e++) total[i][j][e] += sums[i][j][e], sums[i][j][e] = 0;
}

// A product whose K is divided into sections, each of which is a sum by a block of its own.
struct Sections {
  int64_t K, length;
  float* sums;  // the numbers of C for each section; null if there is one
};

}  // namespace tiles

namespace kernel {

// C(m, n) = first(m, n) + Σ_k A(m, k) B(n, k), or the sums of sections. A block has a tile of C and a section.
// `last(m, n, z)` is called once for each number.
template <class Shape, bool kTransposedA, bool kTransposedB, class First, class Last>
__global__ void product_bfloat16(Factor<bfloat16, kTransposedA> A, Factor<bfloat16, kTransposedB> B,
                                 tiles::Sections sections, First first, Last last) {
  using namespace tiles;
  __shared__ Tile<Shape::kRows, kDepth, kTransposedA> a[kStages];
  __shared__ Tile<Shape::kCols, kDepth, kTransposedB> b[kStages];
  const int64_t across = blocks_for(B.rows, Shape::kCols), down = blocks_for(A.rows, Shape::kRows);
  const int64_t section = blockIdx.x / (across * down);
  const int64_t row = blockIdx.x / across % down * Shape::kRows, col = blockIdx.x % across * Shape::kCols;
  const int64_t begin = section * sections.length;
  const int64_t end = begin + sections.length < sections.K ? begin + sections.length : sections.K;
  const int steps = static_cast<int>(blocks_for(end - begin, kDepth));
  const auto begin_to_load = [&](int step) {
    if (step < steps) {
      const int64_t k = begin + int64_t{step} * kDepth;
      a[step % kStages].template begin_to_load<Shape::kThreads>(A, row, k, end);
      b[step % kStages].template begin_to_load<Shape::kThreads>(B, col, k, end);
    }
    end_copies();
  };

  const bool inside = row + Shape::row() < A.rows && col + Shape::col() < B.rows;  // of the warp
  Sums<Shape> total = {}, sums = {};
  for (int step = 0; step < kStages - 1; step++) begin_to_load(step);
  for (int step = 0; step < steps; step++) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // all have read what was at the place that is filled now
    begin_to_load(step + kStages - 1);
    if (inside) multiply<Shape>(a[step % kStages], b[step % kStages], sums);
    if ((step + 1) % (kChunk / kDepth) == 0 || step + 1 == steps) add_chunk<Shape>(sums, total);
  }

#pragma unroll  // the sums remain in registers
  for (int i = 0; i < Shape::kRowParts; i++)
#pragma unroll
    for (int j = 0; j < Shape::kColParts; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int64_t m = row + Shape::row() + i * kPartRows + part_row(e);
        const int64_t n = col + Shape::col() + j * kPartCols + part_col(e);
        if (m >= A.rows || n >= B.rows) continue;
        if (sections.sums)
          sections.sums[(section * A.rows + m) * B.rows + n] = total[i][j][e];
        else
          last(m, n, first(m, n) + total[i][j][e]);
      }
}

// Adds the sums of the sections, in order. A thread has a number.
template <class First, class Last>
__global__ void add_sections(int64_t rows, int64_t cols, int64_t count, const float* sums, First first, Last last) {
  const Place p = place_in(rows, cols);
  if (!p.inside) return;
  float total = sums[p.row * cols + p.col];
  for (int64_t s = 1; s < count; s++) total += sums[(s * rows + p.row) * cols + p.col];
  last(p.row, p.col, first(p.row, p.col) + total);
}

}  // namespace kernel

namespace tiles {

// A number of blocks that occupies a GPU.
constexpr int64_t kManyBlocks = 128;
// The sections of a long product: their length depends on nothing, so their sums do not either.
constexpr int64_t kLongSection = 4 * kChunk;

template <class Shape>
int64_t count(int64_t rows, int64_t cols) {
  return blocks_for(rows, Shape::kRows) * blocks_for(cols, Shape::kCols);
}

// Computes a product in sections of this length.
template <class Shape, bool kTransposedA, bool kTransposedB, class First, class Last>
void product(Factor<bfloat16, kTransposedA> A, Factor<bfloat16, kTransposedB> B, int64_t K, int64_t length, First first,
             Last last) {
  const int64_t parts = std::max<int64_t>(blocks_for(K, length), 1);
  const Sections sections{K, length, parts > 1 ? workspace<float>(parts * A.rows * B.rows) : nullptr};
  launch(kernel::product_bfloat16<Shape, kTransposedA, kTransposedB, First, Last>, parts * count<Shape>(A.rows, B.rows),
         Shape::kThreads, A, B, sections, first, last);
  if (parts > 1)
    launch_elements(A.rows, B.rows, kernel::add_sections<First, Last>, A.rows, B.rows, parts, sections.sums, first,
                    last);
}

}  // namespace tiles

// `kLong`: the product of a gradient of weights, whose K is the number of rows of a batch.
template <bool kLong, bool kTransposedA, bool kTransposedB, class First, class Last>
void product(Factor<bfloat16, kTransposedA> A, Factor<bfloat16, kTransposedB> B, int64_t K, First first, Last last) {
  using namespace tiles;
  // Sections of one chunk have the bits of a single section, and occupy more blocks.
  const bool is_small = count<Medium>(A.rows, B.rows) < kManyBlocks;
  const int64_t length = kLong ? kLongSection : is_small ? kChunk : std::max<int64_t>(K, 1);
  if (count<Large>(A.rows, B.rows) >= kManyBlocks) {
    tiles::product<Large>(A, B, K, length, first, last);
  } else if (kTransposedA || A.rows > Narrow::kRows) {
    tiles::product<Medium>(A, B, K, length, first, last);
  } else if constexpr (!kTransposedA) {
    tiles::product<Narrow>(A, B, K, length, first, last);
  }
}

}  // namespace qkv::cuda
