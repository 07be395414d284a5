// The functions after the linear layers of heads: of classifiers, and of embedders of sentences.
#pragma once

#include "qkv/matrix.h"
#include "qkv/text_head.h"

namespace qkv {

// y = φ(x) for every element, computed in double precision. x, y: [N, d]; y is assigned and may be x.
//   identity, tanh, relu, sigmoid 1 / (1 + e^−x); gelu and silu as in ops/activation.h
template <class Real>
void dense_activation(DenseActivation kind, Matrix<const Real> x, Matrix<Real> y);

// In place: `gradient` is dy and becomes dx = dy φ'(x), computed in double precision; φ'(0) = 0 for relu.
template <class Real>
void dense_activation_backward(DenseActivation kind, Matrix<const Real> x, Matrix<Real> gradient);

}  // namespace qkv
