// The plain loops of the linear layer, for reading and for float64.
#pragma once

#include "core/matrix.h"

namespace qkv::reference {

template <class Real>
void linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y) {
  for (int64_t n = 0; n < Y.rows; n++)
    for (int64_t o = 0; o < Y.cols; o++) {
      Real sum = b ? b[o] : Real(0);
      for (int64_t i = 0; i < X.cols; i++) sum += X(n, i) * W(o, i);
      Y(n, o) = sum;
    }
}

template <class Real>
void linear_backward_input(Matrix<const Real> dY, Matrix<const Real> W, Matrix<Real> dX, bool accumulate) {
  for (int64_t n = 0; n < dX.rows; n++)
    for (int64_t i = 0; i < dX.cols; i++) {
      Real sum = accumulate ? dX(n, i) : Real(0);
      for (int64_t o = 0; o < dY.cols; o++) sum += dY(n, o) * W(o, i);
      dX(n, i) = sum;
    }
}

template <class Real>
void linear_backward_weight(Matrix<const Real> dY, Matrix<const Real> X, Matrix<Real> dW, Real* db) {
  for (int64_t o = 0; o < dY.cols; o++)
    for (int64_t n = 0; n < dY.rows; n++) {
      for (int64_t i = 0; i < X.cols; i++) dW(o, i) += dY(n, o) * X(n, i);
      if (db) db[o] += dY(n, o);
    }
}

}  // namespace qkv::reference
