// The softcap of logits and its derivative, element by element.
#pragma once

#include <cmath>

#include "qkv/matrix.h"

namespace qkv::reference {

template <class Real>
void softcap(Matrix<Real> z, Real cap) {
  for (int64_t n = 0; n < z.rows; n++)
    for (int64_t v = 0; v < z.cols; v++) z(n, v) = cap * std::tanh(z(n, v) / cap);
}

template <class Real>
void softcap_backward(Matrix<const Real> y, Real cap, Matrix<Real> d) {
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t v = 0; v < y.cols; v++) d(n, v) *= 1 - (y(n, v) / cap) * (y(n, v) / cap);
}

}  // namespace qkv::reference
