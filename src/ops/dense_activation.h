// The functions after the linear layers of heads: of classifiers, and of embedders of sentences.
#pragma once

#include "qkv/embedder.h"
#include "qkv/matrix.h"

namespace qkv {

// y = φ(y) for every element, computed in double precision.
//   identity, tanh, relu, sigmoid 1 / (1 + e^−y); gelu and silu as in ops/activation.h
template <class Real>
void dense_activation(DenseActivation kind, Matrix<Real> y);

}  // namespace qkv
