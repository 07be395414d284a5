// Chosen logits and their gradients as plain loops.
#pragma once

#include <algorithm>

#include "ops/gathered_logits.h"

namespace qkv::reference {

template <class T>
void gathered_logits(Matrix<const T> h, Matrix<const T> E, Matrix<const int32_t> ids, Matrix<T> s) {
  for (int64_t n = 0; n < ids.rows; n++)
    for (int64_t k = 0; k < ids.cols; k++) {
      T sum = 0;
      for (int64_t c = 0; c < h.cols; c++) sum += h(n, c) * E(ids(n, k), c);
      s(n, k) = sum;
    }
}

template <class T>
void gathered_logits_backward(Matrix<const T> h, Matrix<const T> E, Matrix<const int32_t> ids, Matrix<const T> ds,
                              Matrix<T> dh, Matrix<T> dE) {
  for (int64_t n = 0; n < ids.rows; n++) {
    std::fill_n(dh.row(n), dh.cols, T(0));
    for (int64_t k = 0; k < ids.cols; k++)
      for (int64_t c = 0; c < h.cols; c++) {
        dh(n, c) += ds(n, k) * E(ids(n, k), c);
        dE(ids(n, k), c) += ds(n, k) * h(n, c);
      }
  }
}

}  // namespace qkv::reference
