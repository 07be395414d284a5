// y = dropout(x) and the residual connection y = x + dropout(f).
#pragma once

#include "core/matrix.h"
#include "qkv/dropout.h"

namespace qkv {

// y = dropout(x); x: [rows, cols], y the same shape and possibly the same memory. Its backward is dx = dropout(dy).
template <class Real>
void dropout(Matrix<const Real> x, const Dropout& drop, Matrix<Real> y);

// y = x + dropout(f), the residual connection; all [rows, cols]; y may be x or f. Its backward: dx = dy,
// df = dropout(dy).
template <class Real>
void add_dropout(Matrix<const Real> x, Matrix<const Real> f, const Dropout& drop, Matrix<Real> y);

}  // namespace qkv
