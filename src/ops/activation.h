// Activation functions of the position-wise feed-forward network, FFN(x) = W2 φ(W1 x + b1) + b2, with the dropout that
// follows them. They work on one block at a time, so that a block of a matrix product is still in the cache. "Attention
// Is All You Need", section 3.3.
#pragma once

#include "qkv/config.h"
#include "qkv/dropout.h"
#include "qkv/matrix.h"

namespace qkv {

// y = dropout(φ(x)) in one block. x, y: [N, F]; y is assigned and may be x. The block begins at a column that is a
// multiple of 128.
//   relu       φ(x) = max(0, x)
//   gelu       φ(x) = x Φ(x), Φ the normal distribution function (exact, with erf)
//   silu       φ(x) = x / (1 + e^−x)
//   gelu_tanh  φ(x) = x (1 + tanh u) / 2 with u = √(2/π) (x + 0.044715 x³), the approximation of gelu that GPT-2 uses
template <class Real>
void activation(Activation kind, Matrix<const Real> x, const Dropout& drop, Matrix<Real> y, const Block& block);

// dx = φ'(x) ∘ dropout(dy) in one block. x: the input of forward; for relu the output of forward may be given instead.
// dx is assigned and may be dy.
template <class Real>
void activation_backward(Activation kind, Matrix<const Real> x, Matrix<const Real> dy, const Dropout& drop,
                         Matrix<Real> dx, const Block& block);

// Gated linear unit: y = dropout(φ(a) ∘ b), where x = [a b]: [N, 2F], y: [N, F]; y is assigned. SwiGLU with silu, GeGLU
// with gelu. Shazeer, "GLU Variants Improve Transformer" (2020).
template <class Real>
void gated_activation(Activation kind, Matrix<const Real> x, const Dropout& drop, Matrix<Real> y);

// dx = [φ'(a) ∘ b ∘ d, φ(a) ∘ d] with d = dropout(dy). dx: [N, 2F] is assigned.
template <class Real>
void gated_activation_backward(Activation kind, Matrix<const Real> x, Matrix<const Real> dy, const Dropout& drop,
                               Matrix<Real> dx);

}  // namespace qkv
