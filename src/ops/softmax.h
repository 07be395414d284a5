// Softmax of each row: y = exp(x − max) / Σ exp(x − max).
#pragma once

#include "qkv/matrix.h"

namespace qkv {

// x, y: [N, V]; y is assigned and may be x. A row of only −∞ becomes zeros.
template <class Real>
void softmax(Matrix<const Real> x, Matrix<Real> y);

// dx = y ∘ (dy − Σ_v dy_v y_v), the Jacobian diag(y) − y yᵀ times dy. dx: [N, V] is assigned and may be dy.
template <class Real>
void softmax_backward(Matrix<const Real> y, Matrix<const Real> dy, Matrix<Real> dx);

}  // namespace qkv
