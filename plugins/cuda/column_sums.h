// Sums over the rows of a matrix: over blocks of rows, then over the blocks, in order. So the order depends on the
// number of rows alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arguments.h"
#include "grid.h"
#include "runtime.h"

namespace qkv::cuda {

constexpr int64_t kSummedRows = 64;  // of a block

namespace kernel {

// parts(b, c) = Σ_n term(n, c) over the rows n of block b
template <class Term>
__global__ void sum_blocks_of_rows(int64_t rows, Term term, Matrix<float> parts) {
  const Place at = place_in(parts.rows, parts.cols);
  if (!at.inside) return;
  const int64_t begin = at.row * kSummedRows, end = std::min(rows, begin + kSummedRows);
  float sum = 0;
  for (int64_t n = begin; n < end; n++) sum += term(n, at.col);
  parts(at.row, at.col) = sum;
}

}  // namespace kernel

// The elements of a matrix as terms.
template <class T>
struct Elements {
  Matrix<const T> m;
  __device__ float operator()(int64_t n, int64_t c) const { return m(n, c); }
};

// sums_c += Σ_b parts(b, c)
void add_blocks(Matrix<const float> parts, float* sums);

// sums_c += Σ_n term(n, c)
template <class Term>
void add_column_sums(int64_t rows, int64_t cols, const Term& term, float* sums) {
  const int64_t blocks = blocks_for(rows, kSummedRows);
  if (blocks == 0 || cols == 0) return;
  const Matrix<float> parts(workspace<float>(blocks * cols), blocks, cols);
  launch_elements(blocks, cols, kernel::sum_blocks_of_rows<Term>, rows, term, parts);
  add_blocks(parts, sums);
}

}  // namespace qkv::cuda
