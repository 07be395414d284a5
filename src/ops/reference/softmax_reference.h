// Softmax and its gradient, row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/matrix.h"

namespace qkv::reference {

template <class Real>
void softmax(Matrix<const Real> x, Matrix<Real> y) {
  for (int64_t n = 0; n < x.rows; n++) {
    Real top = std::numeric_limits<Real>::lowest(), sum = 0;
    for (int64_t v = 0; v < x.cols; v++) top = std::max(top, x(n, v));
    for (int64_t v = 0; v < x.cols; v++) sum += y(n, v) = std::exp(x(n, v) - top);
    for (int64_t v = 0; v < x.cols; v++) y(n, v) = sum > 0 ? y(n, v) / sum : sum;
  }
}

template <class Real>
void softmax_backward(Matrix<const Real> y, Matrix<const Real> dy, Matrix<Real> dx) {
  for (int64_t n = 0; n < y.rows; n++) {
    Real sum = 0;
    for (int64_t v = 0; v < y.cols; v++) sum += dy(n, v) * y(n, v);
    for (int64_t v = 0; v < y.cols; v++) dx(n, v) = y(n, v) * (dy(n, v) - sum);
  }
}

}  // namespace qkv::reference
