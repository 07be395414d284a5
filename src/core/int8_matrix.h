// A view of a matrix of weights in 8 bits.
#pragma once

#include <cstdint>

#include "core/matrix.h"

namespace qkv {

// An int8 weight matrix: W(o, i) = scale[o] · values(o, i). Each row has its own scale.
struct Int8Matrix {
  Matrix<const int8_t> values;    // [out, in]
  const float* scale = nullptr;   // [out]
  const int32_t* sums = nullptr;  // [out]: Σ_i values(o, i)
};

}  // namespace qkv
