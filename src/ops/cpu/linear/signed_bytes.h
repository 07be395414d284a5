// Rows of a matrix in signed bytes, with a scale for every 32 columns.
#pragma once

#include "core/arena.h"
#include "core/quantized_matrix.h"

namespace qkv {

struct SignedBytes {
  int64_t stride, groups;
  int8_t* data;      // [rows, stride]: round(x / scale), ties to even
  float* scales;     // [rows, groups]: max |x| / 127 of the group; NaN if a number is NaN or infinite
  int32_t* offsets;  // [rows, groups]: −8 Σ data of the group

  SignedBytes(int64_t rows, int64_t cols, Arena& scratch)
      : stride(cols + 16),  // a vector stored at the last column fits
        groups(cols / Int4Matrix::kGroup),
        data(scratch.take<int8_t>(rows * stride)),
        scales(scratch.take<float>(rows * groups)),
        offsets(scratch.take<int32_t>(rows * groups)) {}
};

}  // namespace qkv
