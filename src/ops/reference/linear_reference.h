// Linear layer as plain loops: the reference for the kernels, and the float64 version.
#pragma once

#include "ops/linear.h"

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
void linear_backward(Matrix<const Real> X, Matrix<const Real> W, Matrix<const Real> dY,
                     const LinearGradients<Real>& g) {
  for (int64_t n = 0; n < g.dX.rows; n++)
    for (int64_t i = 0; i < g.dX.cols; i++) {
      Real sum = g.accumulate ? g.dX(n, i) : Real(0);
      for (int64_t o = 0; o < dY.cols; o++) sum += dY(n, o) * W(o, i);
      g.dX(n, i) = sum;
    }
  for (int64_t o = 0; o < dY.cols; o++)
    for (int64_t n = 0; n < dY.rows; n++) {
      for (int64_t i = 0; g.dW.data && i < X.cols; i++) g.dW(o, i) += dY(n, o) * X(n, i);
      if (g.db) g.db[o] += dY(n, o);
    }
}

}  // namespace qkv::reference
