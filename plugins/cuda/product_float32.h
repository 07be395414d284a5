// Products of float32 factors by a simple kernel, not optimized: tiles in shared memory, no matrix instructions. A
// number is a sum over K in order by one thread, so its bits depend on its row and column alone.
#pragma once

#include "factor.h"
#include "grid.h"

namespace qkv::cuda {
namespace simple {

constexpr int kTile = 64, kDepth = 16, kSide = 16, kEach = kTile / kSide;  // a thread has kEach × kEach numbers

// Loads a tile of kTile rows and kDepth numbers of a factor; zeros outside of it.
template <bool kTransposed>
__device__ void load_tile(Factor<float, kTransposed> factor, int64_t row, int64_t k, int64_t K,
                          float (&tile)[kTile][kDepth + 1]) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kSide * kSide) {
    // Adjacent threads read adjacent elements.
    const int r = kTransposed ? i % kTile : i / kDepth, c = kTransposed ? i / kTile : i % kDepth;
    const bool inside = row + r < factor.rows && k + c < K;
    tile[r][c] = inside ? *factor.place(row + r, k + c) : 0;
  }
}

}  // namespace simple

namespace kernel {

// C(m, n) = first(m, n) + Σ_k A(m, k) B(n, k). A block has a tile of C. `first(m, n)` is read and `last(m, n, z)` is
// called once for each number.
template <bool kTransposedA, bool kTransposedB, class First, class Last>
__global__ void product_float32(Factor<float, kTransposedA> A, Factor<float, kTransposedB> B, int64_t K, First first,
                                Last last) {
  using namespace simple;
  __shared__ float a_tile[kTile][kDepth + 1], b_tile[kTile][kDepth + 1];
  const int64_t tiles = blocks_for(B.rows, kTile);
  const int64_t row = blockIdx.x / tiles * kTile, col = blockIdx.x % tiles * kTile;
  const int y = static_cast<int>(threadIdx.x) / kSide, x = static_cast<int>(threadIdx.x) % kSide;
  float sum[kEach][kEach];
  for (int i = 0; i < kEach; i++)
    for (int j = 0; j < kEach; j++) {
      const int64_t m = row + y + i * kSide, n = col + x + j * kSide;
      sum[i][j] = m < A.rows && n < B.rows ? first(m, n) : 0;
    }
  for (int64_t k = 0; k < K; k += kDepth) {
    load_tile(A, row, k, K, a_tile);
    load_tile(B, col, k, K, b_tile);
    __syncthreads();
    for (int c = 0; c < kDepth; c++)
      for (int i = 0; i < kEach; i++)
        for (int j = 0; j < kEach; j++) sum[i][j] += a_tile[y + i * kSide][c] * b_tile[x + j * kSide][c];
    __syncthreads();
  }
  for (int i = 0; i < kEach; i++)
    for (int j = 0; j < kEach; j++) {
      const int64_t m = row + y + i * kSide, n = col + x + j * kSide;
      if (m < A.rows && n < B.rows) last(m, n, sum[i][j]);
    }
}

}  // namespace kernel

template <bool kLong, bool kTransposedA, bool kTransposedB, class First, class Last>
void product(Factor<float, kTransposedA> A, Factor<float, kTransposedB> B, int64_t K, First first, Last last) {
  using namespace simple;
  launch(kernel::product_float32<kTransposedA, kTransposedB, First, Last>,
         blocks_for(A.rows, kTile) * blocks_for(B.rows, kTile), kSide * kSide, A, B, K, first, last);
}

}  // namespace qkv::cuda
