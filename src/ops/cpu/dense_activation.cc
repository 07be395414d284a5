#include "ops/dense_activation.h"

#include "ops/reference/dense_activation_reference.h"

namespace qkv {

template <class Real>
void dense_activation(DenseActivation kind, Matrix<Real> y) {
  if (kind == DenseActivation::identity) return;
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t c = 0; c < y.cols; c++)
      y(n, c) = static_cast<Real>(reference::dense_value(kind, static_cast<double>(y(n, c))));
}

template void dense_activation(DenseActivation, Matrix<float>);
template void dense_activation(DenseActivation, Matrix<double>);

}  // namespace qkv
