// Dropout, y = dropout(x), and the residual connection with dropout, y = x + dropout(f). "Attention Is All You Need",
// section 5.4 (residual dropout); Srivastava et al., "Dropout" (2014).
#pragma once

#include "qkv/dropout.h"
#include "qkv/matrix.h"

namespace qkv {

// y = dropout(x). x, y: [rows, cols]; y is assigned and may be x. Backward is the same function: dx = dropout(dy).
template <class Real>
void dropout(Matrix<const Real> x, const Dropout& drop, Matrix<Real> y);

// Residual connection: y = x + dropout(f). All are [rows, cols]; y is assigned and may be x or f. Backward: dx = dy and
// df = dropout(dy).
template <class Real>
void add_dropout(Matrix<const Real> x, Matrix<const Real> f, const Dropout& drop, Matrix<Real> y);

}  // namespace qkv
