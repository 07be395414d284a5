// Softmax and cross-entropy with label smoothing, row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "qkv/matrix.h"

namespace qkv::reference {

// Returns log Σ_v exp(x_v) of row n.
template <class Real>
Real log_sum_exp(Matrix<const Real> x, int64_t n) {
  Real top = x(n, 0), sum = 0;
  for (int64_t v = 1; v < x.cols; v++) top = std::max(top, x(n, v));
  for (int64_t v = 0; v < x.cols; v++) sum += std::exp(x(n, v) - top);
  return top + std::log(sum);
}

template <class Real>
void cross_entropy(Matrix<const Real> logits, std::span<const int32_t> targets, Real smoothing, Real* loss, Real* nll) {
  const Real share = smoothing / static_cast<Real>(logits.cols);  // ε/V
  for (int64_t n = 0; n < logits.rows; n++) {
    const Real lse = log_sum_exp(logits, n);
    nll[n] = lse - logits(n, targets[n]);
    loss[n] = (1 - smoothing) * nll[n];
    if (smoothing > 0)  // without smoothing, a logit of −∞ would give 0 · ∞
      for (int64_t v = 0; v < logits.cols; v++) loss[n] += share * (lse - logits(n, v));
  }
}

template <class Real>
void cross_entropy_with_gradient(Matrix<Real> logits, std::span<const int32_t> targets, Real smoothing, Real scale,
                                 Real* loss, Real* nll) {
  reference::cross_entropy<Real>(logits, targets, smoothing, loss, nll);
  const Real share = smoothing / static_cast<Real>(logits.cols);
  for (int64_t n = 0; n < logits.rows; n++) {
    const Real lse = log_sum_exp<Real>(logits, n);
    for (int64_t v = 0; v < logits.cols; v++) {
      const Real q = share + (v == targets[n] ? 1 - smoothing : 0);
      logits(n, v) = scale * (std::exp(logits(n, v) - lse) - q);
    }
  }
}

template <class Real>
void log_softmax(Matrix<Real> logits) {
  for (int64_t n = 0; n < logits.rows; n++) {
    const Real lse = log_sum_exp<Real>(logits, n);
    for (int64_t v = 0; v < logits.cols; v++) logits(n, v) -= lse;
  }
}

}  // namespace qkv::reference
