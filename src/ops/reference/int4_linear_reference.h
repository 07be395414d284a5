// Linear layer with int4 weights and 8-bit inputs as plain loops.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "core/float16.h"
#include "core/to_size.h"
#include "ops/int4_linear.h"
#include "ops/row_linear.h"

namespace qkv::reference {

inline const std::byte* int4_block(const Int4Matrix& W, int64_t o, int64_t i) {
  return W.row_blocks(o) + i / Int4Matrix::kColumns * Int4Matrix::kBlockBytes;
}

// Returns q(o, i).
inline int int4_value(const Int4Matrix& W, int64_t o, int64_t i) {
  const int64_t group = i % Int4Matrix::kColumns / Int4Matrix::kGroup, column = i % Int4Matrix::kGroup;
  const std::byte* bytes = int4_block(W, o, i) + Int4Matrix::kScaleBytes + group * Int4Matrix::kGroupBytes;
  const int byte = std::to_integer<int>(bytes[column % 16 / 4 * 64 + o % 16 * 4 + column % 4]);
  return (column < 16 ? byte & 15 : byte >> 4) - 8;
}

inline float int4_scale(const Int4Matrix& W, int64_t o, int64_t i) {
  const int64_t group = i % Int4Matrix::kColumns / Int4Matrix::kGroup;
  float16 scale;
  std::memcpy(&scale, int4_block(W, o, i) + (group * Int4Matrix::kRows + o % Int4Matrix::kRows) * 2, sizeof scale);
  return scale;
}

// y = b_o + Σ_g s_g · scale_og Σ_{i in g} u_i q_oi with u_i = round(x_i / s_g), ties to even.
inline void row_linear(Matrix<const float> X, const Int4Matrix& W, const float* b, Matrix<float> Y) {
  for (int64_t n = 0; n < Y.rows; n++)
    for (int64_t o = 0; o < Y.cols; o++) {
      double y = b ? b[o] : 0;
      for (int64_t g = 0; g < X.cols; g += Int4Matrix::kGroup) {
        float largest = 0;
        for (int64_t i = g; i < g + Int4Matrix::kGroup; i++) largest = std::max(largest, std::abs(X(n, i)));
        const float inverse = largest > kLeastScaled ? 127 / largest : 0;
        int32_t sum = 0;
        for (int64_t i = g; i < g + Int4Matrix::kGroup; i++)
          sum += static_cast<int32_t>(std::nearbyint(X(n, i) * inverse)) * int4_value(W, o, i);
        y += static_cast<double>(sum) * static_cast<double>(largest / 127) * static_cast<double>(int4_scale(W, o, g));
      }
      Y(n, o) = static_cast<float>(y);
    }
}

}  // namespace qkv::reference
