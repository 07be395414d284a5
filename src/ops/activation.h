// The non-linearities of the feed-forward layer, with the dropout that follows them: block by block, as the products
// around them go.
#pragma once

#include "core/matrix.h"
#include "qkv/config.h"
#include "qkv/dropout.h"

namespace qkv {

// y = dropout(φ(x)) in one block, which begins at a column that is a multiple of 128; x, y: [N, F], y may be x.
//   relu  φ(x) = max(0, x)        gelu  φ(x) = x Φ(x), Φ the normal distribution function (the exact erf form)
//   silu  φ(x) = x / (1 + e^−x)
//   gelu_tanh  φ(x) = x (1 + tanh u) / 2 with u = √(2/π) (x + 0.044715 x³): gelu's approximation, as in GPT-2
template <class Real>
void activation(Activation kind, Matrix<const Real> x, const Dropout& drop, Matrix<Real> y, const Block& block);

// dx = φ'(x) ∘ dropout(dy) in one block; x: what forward read, or for relu what it gave; dx is assigned and may be dy.
template <class Real>
void activation_backward(Activation kind, Matrix<const Real> x, Matrix<const Real> dy, const Dropout& drop,
                         Matrix<Real> dx, const Block& block);

// y = dropout(φ(a) ∘ b), where x = [a b]: [N, 2F], y: [N, F]. Shazeer, "GLU Variants Improve Transformer" (2020):
// SwiGLU with silu, GeGLU with gelu.
template <class Real>
void gated_activation(Activation kind, Matrix<const Real> x, const Dropout& drop, Matrix<Real> y);

// dx = [φ'(a) ∘ b ∘ d, φ(a) ∘ d] with d = dropout(dy); dx: [N, 2F] is assigned.
template <class Real>
void gated_activation_backward(Activation kind, Matrix<const Real> x, Matrix<const Real> dy, const Dropout& drop,
                               Matrix<Real> dx);

}  // namespace qkv
