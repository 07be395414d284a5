// Softmax and label-smoothed cross-entropy in one: probabilities are never stored beside the logits.
// Szegedy et al., "Rethinking the Inception Architecture" (2016), section 7, for the smoothing.
#pragma once

#include <cstdint>
#include <span>

#include "core/matrix.h"

namespace qkv {

// With p = softmax(logits_n), t = target_n and q = (1 − ε)·onehot(t) + ε/V:
//   loss_n = −Σ_v q_v log p_v,   nll_n = −log p_t   (natural logarithm)
// logits: [N, V]; targets: [N], each in [0, V); loss, nll: [N]. logits are read only.
template <class Real>
void cross_entropy(Matrix<const Real> logits, std::span<const int32_t> targets, Real smoothing, Real* loss, Real* nll);

// The same losses, and logits ← scale · (p − q), the gradient of scale · Σ_n loss_n.
template <class Real>
void cross_entropy_with_gradient(Matrix<Real> logits, std::span<const int32_t> targets, Real smoothing, Real scale,
                                 Real* loss, Real* nll);

// logits ← log softmax(logits), row by row; for decoding.
template <class Real>
void log_softmax(Matrix<Real> logits);

}  // namespace qkv
