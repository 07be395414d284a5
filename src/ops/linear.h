// Linear layer: Y = X Wᵀ + b. The products are oneDNN's, cut into blocks whose size does not depend on the number of
// threads, so that neither does the result.
#pragma once

#include "core/matrix.h"

namespace qkv {

// X: [N, in], W: [out, in], b: [out] or null, Y: [N, out]; Y is assigned and overlaps none of the others.
template <class Real>
void linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y);

// dX = dY W; dX: [N, in] is assigned, or added to when `accumulate`.
template <class Real>
void linear_backward_input(Matrix<const Real> dY, Matrix<const Real> W, Matrix<Real> dX, bool accumulate = false);

// dW += dYᵀ X,   db += Σ_n dY_n (db may be null)
template <class Real>
void linear_backward_weight(Matrix<const Real> dY, Matrix<const Real> X, Matrix<Real> dW, Real* db);

}  // namespace qkv
