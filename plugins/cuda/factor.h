// The factors of a product of matrices, each row of one with each row of the other.
#pragma once

#include "arguments.h"

namespace qkv::cuda {

// A matrix, or its transpose. `stride` elements lie between the rows of the matrix.
template <class T, bool kTransposed_>
struct Factor {
  static constexpr bool kTransposed = kTransposed_;
  const T* data;
  int64_t rows, stride;

  __device__ const T* place(int64_t r, int64_t k) const {
    return kTransposed ? data + k * stride + r : data + r * stride + k;
  }
};
template <class T>
Factor<T, false> rows_of(const qkv_matrix& m) {
  return {static_cast<const T*>(m.data), m.rows, m.stride};
}
template <class T>
Factor<T, true> columns_of(const qkv_matrix& m) {
  return {static_cast<const T*>(m.data), m.cols, m.stride};
}

}  // namespace qkv::cuda
