// Linear layer with int8 weights and 8-bit inputs as plain loops.
#pragma once

#include <cmath>
#include <vector>

#include "ops/row_linear.h"

namespace qkv::reference {

// y = s · scale_o Σ_i (u_i − 128) w_oi + b_o with u_i = round(x_i / s) + 128, ties to even.
inline void row_linear(Matrix<const float> X, const Int8Matrix& W, const float* b, Matrix<float> Y) {
  for (int64_t n = 0; n < Y.rows; n++) {
    float largest = 0;
    for (int64_t i = 0; i < X.cols; i++) largest = std::max(largest, std::abs(X(n, i)));
    const float s = largest / 127, inverse = largest > kLeastScaled ? 127 / largest : 0;
    for (int64_t o = 0; o < Y.cols; o++) {
      int32_t sum = 0;
      for (int64_t i = 0; i < X.cols; i++)
        sum += static_cast<int32_t>(std::nearbyint(X(n, i) * inverse)) * W.values(o, i);
      Y(n, o) = static_cast<float>(sum) * s * W.scale[o] + (b ? b[o] : 0);
    }
  }
}

}  // namespace qkv::reference
