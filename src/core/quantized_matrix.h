// Views of matrices of weights in 8 and 4 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qkv/matrix.h"

namespace qkv {

// An int8 weight matrix: W(o, i) = scale[o] · values(o, i). Each row has its own scale.
struct Int8Matrix {
  Matrix<const int8_t> values;    // [out, in]
  const float* scale = nullptr;   // [out]
  const int32_t* sums = nullptr;  // [out]: Σ_i values(o, i)
};

// An int4 weight matrix: W(o, i) = scale(o, i / 32) · q(o, i), with integers q from −8 to 7. It consists of blocks of
// 16 rows × 64 columns. A block holds float16 scales, [2 groups of columns, 16 rows], then for each group of 32 columns
// 256 bytes, [4, 16 rows, 4]: byte (k, o, j) holds q + 8 of column 4 k + j of the group in its lower four bits, and of
// column 16 + 4 k + j in its upper ones.
struct Int4Matrix {
  static constexpr int64_t kRows = 16, kColumns = 64, kGroup = 32;  // of a block, and of the columns with one scale
  static constexpr int64_t kScaleBytes = 64, kGroupBytes = 256, kBlockBytes = kScaleBytes + 2 * kGroupBytes;

  const std::byte* blocks = nullptr;  // [rows / 16, cols / 64, kBlockBytes]
  int64_t rows = 0, cols = 0;         // multiples of 16 and 64

  int64_t bytes() const { return rows / kRows * (cols / kColumns) * kBlockBytes; }
  // Returns the blocks of rows [row, row + 16).
  const std::byte* row_blocks(int64_t row) const { return blocks + row / kRows * (cols / kColumns) * kBlockBytes; }
  // Both must be multiples of 16.
  Int4Matrix row_range(int64_t begin, int64_t end) const { return {row_blocks(begin), end - begin, cols}; }
};

}  // namespace qkv
