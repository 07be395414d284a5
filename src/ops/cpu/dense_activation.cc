#include "ops/dense_activation.h"

#include "ops/reference/dense_activation_reference.h"

namespace qkv {

template <class Real>
void dense_activation(DenseActivation kind, Matrix<const Real> x, Matrix<Real> y) {
  if (kind == DenseActivation::identity && x.data == y.data) return;
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t c = 0; c < y.cols; c++)
      y(n, c) = static_cast<Real>(reference::dense_value(kind, static_cast<double>(x(n, c))));
}

template <class Real>
void dense_activation_backward(DenseActivation kind, Matrix<const Real> x, Matrix<Real> gradient) {
  if (kind == DenseActivation::identity) return;
  for (int64_t n = 0; n < x.rows; n++)
    for (int64_t c = 0; c < x.cols; c++) {
      Real& d = gradient(n, c);
      d = static_cast<Real>(static_cast<double>(d) * reference::dense_slope(kind, static_cast<double>(x(n, c))));
    }
}

template void dense_activation(DenseActivation, Matrix<const float>, Matrix<float>);
template void dense_activation(DenseActivation, Matrix<const double>, Matrix<double>);
template void dense_activation_backward(DenseActivation, Matrix<const float>, Matrix<float>);
template void dense_activation_backward(DenseActivation, Matrix<const double>, Matrix<double>);

}  // namespace qkv
