// Dropout and the residual connection, element by element.
#pragma once

#include "ops/dropout.h"

namespace qkv::reference {

// The factor of one element: 0 or 1 / (1 − p).
template <class Real>
constexpr Real dropout_factor(const Dropout& drop, int64_t row, int64_t col) {
  if (!drop.active()) return 1;
  return is_kept(drop, row, col) ? static_cast<Real>(drop.scale()) : Real(0);
}

template <class Real>
void dropout(Matrix<const Real> x, const Dropout& drop, Matrix<Real> y) {
  for (int64_t n = 0; n < x.rows; n++)
    for (int64_t i = 0; i < x.cols; i++) y(n, i) = x(n, i) * dropout_factor<Real>(drop, n, i);
}

template <class Real>
void add_dropout(Matrix<const Real> x, Matrix<const Real> f, const Dropout& drop, Matrix<Real> y) {
  for (int64_t n = 0; n < x.rows; n++)
    for (int64_t i = 0; i < x.cols; i++) y(n, i) = x(n, i) + f(n, i) * dropout_factor<Real>(drop, n, i);
}

}  // namespace qkv::reference
