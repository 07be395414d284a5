// Losses over sampled items, row by row: ops/sampled_loss.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "qkv/matrix.h"

namespace qkv::reference {

template <class Real>
constexpr Real sigmoid(Real x) {
  return 1 / (1 + std::exp(-x));
}

// log(1 + e^x), without overflow.
template <class Real>
constexpr Real softplus(Real x) {
  return std::max(x, Real(0)) + std::log1p(std::exp(-std::abs(x)));
}

// −β log σ(positive) − Σ log(1 − σ(negatives_k)). Replaces the scores by the gradient.
template <class Real>
Real binary_loss(Real beta, Real& positive, Real* negatives, int64_t count) {
  Real loss = beta * softplus(-positive);
  positive = -beta * sigmoid(-positive);
  for (int64_t k = 0; k < count; k++) {
    loss += softplus(negatives[k]);
    negatives[k] = sigmoid(negatives[k]);
  }
  return loss;
}

// −log softmax of s_0 and the s_k − log_draws_k
template <class Real>
Real sampled_softmax_loss(const float* log_draws, Real* s, int64_t count) {
  for (int64_t k = 1; k < count; k++) s[k] -= static_cast<Real>(log_draws[k]);
  const Real first = s[0], largest = *std::max_element(s, s + count);
  Real sum = 0;
  for (int64_t k = 0; k < count; k++) sum += s[k] = std::exp(s[k] - largest);
  for (int64_t k = 0; k < count; k++) s[k] /= sum;
  s[0] -= 1;
  return largest + std::log(sum) - first;
}

// A score whose probability is 0, and finite, so that no difference of scores is NaN.
constexpr double kHiddenScore = -1e30;

// Hides the negatives of each row, s: [N, K + 1], that are its label. ids: [K], in increasing order.
template <class Real>
void hide_labels(std::span<const int32_t> labels, std::span<const int32_t> ids, Matrix<Real> s) {
  for (int64_t n = 0; n < s.rows; n++) {
    const auto [begin, end] = std::equal_range(ids.begin(), ids.end(), labels[static_cast<size_t>(n)]);
    std::fill(s.row(n) + (begin - ids.begin()), s.row(n) + (end - ids.begin()), static_cast<Real>(kHiddenScore));
  }
}

}  // namespace qkv::reference
