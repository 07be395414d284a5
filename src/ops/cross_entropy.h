// Output softmax and cross-entropy loss with label smoothing, in one op: the probabilities are not stored separately
// from the logits. "Attention Is All You Need", section 5.4; Szegedy et al., "Rethinking the Inception Architecture"
// (2016), section 7.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

// With p = softmax(logits_n), t = target_n and q = (1 − ε) · onehot(t) + ε/V:
//   loss_n = −Σ_v q_v log p_v,   nll_n = −log p_t   (natural logarithm)
// logits: [N, V] are only read; targets: [N], each in [0, V); loss, nll: [N] are assigned.
template <class Real>
void cross_entropy(Matrix<const Real> logits, std::span<const int32_t> targets, Arithmetic<Real> smoothing,
                   Statistic<Real>* loss, Statistic<Real>* nll);

// The same losses; also assigns logits ← scale · (p − q), the gradient of scale · Σ_n loss_n.
template <class Real>
void cross_entropy_with_gradient(Matrix<Real> logits, std::span<const int32_t> targets, Arithmetic<Real> smoothing,
                                 Arithmetic<Real> scale, Statistic<Real>* loss, Statistic<Real>* nll);

// Returns the sum of N losses in double precision: each block of `block` losses is summed in order, then the blocks.
template <class Real>
double sum_losses(const Statistic<Real>* loss, int64_t N, int64_t block);

// logits ← log softmax(logits), row by row, for decoding.
template <class Real>
void log_softmax(Matrix<Real> logits);

}  // namespace qkv
