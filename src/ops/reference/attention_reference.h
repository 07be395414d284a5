// Scaled dot-product attention, O = softmax(Q Kᵀ · scale + M) V, as plain loops that follow the formulas in
// qkv/attention.h. The kernels are tested against it.
#pragma once

#include <cmath>

#include "ops/attention_view.h"
#include "ops/dropout.h"

namespace qkv::reference {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// A score, and its derivative with respect to the scaled product q · k · scale: 1 − tanh² with a softcap, otherwise 1.
template <class Real>
struct Score {
  Real value, slope;
};

// Whether a mask hides key j from query i.
template <class T>
constexpr bool is_masked(const AttentionInput<T>& in, int64_t s, int64_t h, int64_t i, int64_t j) {
  return (in.allowed.data && !*entry(in.allowed, s, h, i, j)) ||
         (in.mask.data && *entry(in.mask, s, h, i, j) < kHides<Arithmetic<T>>);
}

// Returns s_ij = cap(scale · product) + m(s, h, i, j) − slope_h |p(i) − j| + bias_h(j − p(i)), product = q_i · k_j.
template <class T>
constexpr Score<Arithmetic<T>> score_of(const AttentionInput<T>& in, const Span& at, int64_t s, int64_t h, int64_t i,
                                        int64_t j, Arithmetic<T> product) {
  using Real = Arithmetic<T>;
  Score<Real> result{in.scale * product, 1};
  if (in.softcap > 0) {
    const Real t = std::tanh(result.value / in.softcap);
    result = {in.softcap * t, 1 - t * t};
  }
  if (in.mask.data) result.value += *entry(in.mask, s, h, i, j);
  if (in.alibi) result.value -= in.alibi[h] * static_cast<Real>(std::abs(place(in, at, i) - j));
  if (const DistanceBias<const Real>& bias = in.distance_bias; bias.data)
    result.value += bias.data[h * bias.width() + distance_place(in, at, i, j, bias.reach)];
  return result;
}

// Returns s_ij; −∞ if query i does not see key j.
template <class T>
constexpr Score<Arithmetic<T>> score(const AttentionInput<T>& in, int64_t s, int64_t h, int64_t i, int64_t j) {
  using Real = Arithmetic<T>;
  const Span at = span(in.sequences, s);
  const TokenRange seen = visible_keys(in, at, i);
  if (j < seen.begin || j >= seen.end || is_masked(in, s, h, i, j)) return {static_cast<Real>(kHidden), 0};
  const T *q = in.q.at(s, at.q0 + i, h), *k = in.k.at(s, at.k0 + j, kv_head(in, h));
  Real dot = 0;
  for (int64_t e = 0; e < in.key_width; e++) dot += static_cast<Real>(q[e]) * static_cast<Real>(k[e]);
  return score_of(in, at, s, h, i, j, dot);
}

// Returns log Σ_j exp(s_ij), computed relative to the largest score; −∞ if the query sees no key.
template <class T>
Arithmetic<T> log_sum_exp(const AttentionInput<T>& in, int64_t s, int64_t h, int64_t i) {
  using Real = Arithmetic<T>;
  const int64_t S = span(in.sequences, s).S;
  Real largest = static_cast<Real>(kHidden), sum = 0;
  for (int64_t j = 0; j < S; j++) {
    const Real x = score(in, s, h, i, j).value;
    if (std::isnan(x)) return x;
    largest = std::max(largest, x);
  }
  if (largest == static_cast<Real>(kHidden)) return largest;
  for (int64_t j = 0; j < S; j++) sum += std::exp(score(in, s, h, i, j).value - largest);
  return largest + std::log(sum);
}

// Returns exp(s − lse); 0 for a hidden key.
template <class Real>
constexpr Real weight(Real score, Real lse) {
  return score == static_cast<Real>(kHidden) ? 0 : std::exp(score - lse);
}

// Returns the dropout factor of the weight of query i and key j: 0 or 1 / (1 − p).
template <class T>
constexpr Arithmetic<T> kept(const AttentionInput<T>& in, int64_t s, int64_t h, int64_t i, int64_t j) {
  if (!in.dropout.active()) return 1;
  const Dropout drop = head_dropout(in, h);
  return is_kept(drop, span(in.sequences, s).first_row + i, j) ? static_cast<Arithmetic<T>>(drop.scale()) : 0;
}

// Computes one query. A key of weight zero contributes nothing, whatever its value.
template <class T>
void attend_row(const AttentionInput<T>& in, int64_t s, int64_t h, int64_t i, Arithmetic<T> lse, T* out) {
  using Real = Arithmetic<T>;
  const Span at = span(in.sequences, s);
  Real sum[kMaxHeadWidth] = {};
  for (int64_t j = 0; j < at.S; j++) {
    const Real a = weight(score(in, s, h, i, j).value, lse) * kept(in, s, h, i, j);
    const T* v = in.v.at(s, at.k0 + j, kv_head(in, h));
    for (int64_t e = 0; e < in.value_width && a != 0; e++) sum[e] += a * static_cast<Real>(v[e]);
  }
  for (int64_t e = 0; e < in.value_width; e++) out[e] = static_cast<T>(sum[e]);
}

template <class T>
void attention(const AttentionInput<T>& in, Heads<T> out, Heads<Arithmetic<T>> lse) {
  for (int64_t s = 0; s < in.sequences.count; s++)
    for (int64_t h = 0; h < in.heads; h++) {
      const Span at = span(in.sequences, s);
      for (int64_t i = 0; i < at.T; i++) {
        const Arithmetic<T> row_lse = log_sum_exp(in, s, h, i);
        attend_row(in, s, h, i, row_lse, out.at(s, at.q0 + i, h));
        if (lse.data) *lse.at(s, at.q0 + i, h) = row_lse;
      }
    }
}

// The arguments of a backward pass.
template <class T>
struct BackwardInput {
  using Real = Arithmetic<T>;
  const AttentionInput<T>& in;
  Heads<const T> out;
  Heads<const Real> lse;
  Heads<const T> dout;
};

// Returns D_i = dO_i · O_i, which equals Σ_j A_ij dA_ij.
template <class T>
constexpr Arithmetic<T> row_term(const BackwardInput<T>& b, int64_t s, int64_t h, int64_t i) {
  using Real = Arithmetic<T>;
  const int64_t n = span(b.in.sequences, s).q0 + i;
  Real D = 0;
  for (int64_t e = 0; e < b.in.value_width; e++)
    D += static_cast<Real>(b.dout.at(s, n, h)[e]) * static_cast<Real>(b.out.at(s, n, h)[e]);
  return D;
}

// For query i and key j: the weight after dropout, dM_ij = A (dA − D), and the gradient of q · k.
template <class Real>
struct Derivative {
  Real weight = 0, dmask = 0, dproduct = 0;
};

template <class T>
constexpr Derivative<Arithmetic<T>> derivative(const BackwardInput<T>& b, int64_t s, int64_t h, int64_t i, int64_t j,
                                               Arithmetic<T> D) {
  using Real = Arithmetic<T>;
  const Span at = span(b.in.sequences, s);
  const Score<Real> x = score(b.in, s, h, i, j);
  const Real a = weight(x.value, *b.lse.at(s, at.q0 + i, h)), keep = kept(b.in, s, h, i, j);
  if (a == 0) return {};
  const T *dout = b.dout.at(s, at.q0 + i, h), *v = b.in.v.at(s, at.k0 + j, kv_head(b.in, h));
  Real dA = 0;
  for (int64_t e = 0; e < b.in.value_width; e++) dA += static_cast<Real>(dout[e]) * static_cast<Real>(v[e]);
  const Real dmask = a * (keep * dA - D);
  return {a * keep, dmask, b.in.scale * x.slope * dmask};
}

// Computes dQ of one query: Σ_j (dQKᵀ)_ij k_j.
template <class T>
void query_gradient(const BackwardInput<T>& b, int64_t s, int64_t h, int64_t i, T* dq) {
  using Real = Arithmetic<T>;
  const Span at = span(b.in.sequences, s);
  Real sum[kMaxHeadWidth] = {};
  const Real D = row_term(b, s, h, i);
  for (int64_t j = 0; j < at.S; j++) {
    const Real g = derivative(b, s, h, i, j, D).dproduct;
    const T* k = b.in.k.at(s, at.k0 + j, kv_head(b.in, h));
    for (int64_t e = 0; e < b.in.key_width && g != 0; e++) sum[e] += g * static_cast<Real>(k[e]);
  }
  for (int64_t e = 0; e < b.in.key_width; e++) dq[e] = static_cast<T>(sum[e]);
}

// Computes dK and dV of one key: Σ_i (dQKᵀ)_ij q_i and Σ_i A_ij dO_i, over the heads that read key/value head `kv`.
template <class T>
void key_gradients(const BackwardInput<T>& b, int64_t s, int64_t kv, int64_t j, T* dk, T* dv) {
  using Real = Arithmetic<T>;
  const Span at = span(b.in.sequences, s);
  Real k_sum[kMaxHeadWidth] = {}, v_sum[kMaxHeadWidth] = {};
  for (int64_t h = 0; h < b.in.heads; h++) {
    if (kv_head(b.in, h) != kv) continue;
    for (int64_t i = 0; i < at.T; i++) {
      const Derivative<Real> d = derivative(b, s, h, i, j, row_term(b, s, h, i));
      const T *q = b.in.q.at(s, at.q0 + i, h), *dout = b.dout.at(s, at.q0 + i, h);
      for (int64_t e = 0; e < b.in.key_width && d.dproduct != 0; e++) k_sum[e] += d.dproduct * static_cast<Real>(q[e]);
      for (int64_t e = 0; e < b.in.value_width && d.weight != 0; e++) v_sum[e] += d.weight * static_cast<Real>(dout[e]);
    }
  }
  for (int64_t e = 0; e < b.in.key_width; e++) dk[e] = static_cast<T>(k_sum[e]);
  for (int64_t e = 0; e < b.in.value_width; e++) dv[e] = static_cast<T>(v_sum[e]);
}

// Computes all gradients of one sequence and key/value head, except that of the mask.
template <class T>
void pair_gradients(const BackwardInput<T>& b, int64_t s, int64_t kv, const AttentionGradients<T>& gradients) {
  const Span at = span(b.in.sequences, s);
  for (int64_t h = 0; h < b.in.heads; h++)
    for (int64_t i = 0; i < at.T && kv_head(b.in, h) == kv; i++)
      query_gradient(b, s, h, i, gradients.dq.at(s, at.q0 + i, h));
  for (int64_t j = 0; j < at.S; j++)
    key_gradients(b, s, kv, j, gradients.dk.at(s, at.k0 + j, kv), gradients.dv.at(s, at.k0 + j, kv));
}

template <class T>
void mask_gradient(const BackwardInput<T>& b, AttentionMask<Arithmetic<T>> dmask) {
  clear(dmask, b.in);
  for (int64_t s = 0; s < b.in.sequences.count; s++)
    for (int64_t h = 0; h < b.in.heads; h++) {
      const Span at = span(b.in.sequences, s);
      for (int64_t i = 0; i < at.T; i++) {
        const Arithmetic<T> D = row_term(b, s, h, i);
        for (int64_t j = 0; j < at.S; j++) *entry(dmask, s, h, i, j) += derivative(b, s, h, i, j, D).dmask;
      }
    }
}

// Computes the gradient of the distance bias: for each head, the sum of dM over the queries and keys at a distance.
template <class T>
void distance_gradient(const BackwardInput<T>& b, Arithmetic<T>* to) {
  const DistanceBias<const Arithmetic<T>>& bias = b.in.distance_bias;
  std::fill_n(to, b.in.heads * bias.width(), Arithmetic<T>(0));
  for (int64_t s = 0; s < b.in.sequences.count; s++)
    for (int64_t h = 0; h < b.in.heads; h++) {
      const Span at = span(b.in.sequences, s);
      for (int64_t i = 0; i < at.T; i++) {
        const Arithmetic<T> D = row_term(b, s, h, i);
        for (int64_t j = 0; j < at.S; j++)
          to[h * bias.width() + distance_place(b.in, at, i, j, bias.reach)] += derivative(b, s, h, i, j, D).dmask;
      }
    }
}

template <class T>
void attention_backward(const BackwardInput<T>& b, const AttentionGradients<T>& gradients) {
  for (int64_t s = 0; s < b.in.sequences.count; s++)
    for (int64_t kv = 0; kv < b.in.key_value_heads(); kv++) pair_gradients(b, s, kv, gradients);
  if (gradients.dmask.data) mask_gradient(b, gradients.dmask);
  if (b.in.distance_bias.data && gradients.ddistance_bias) distance_gradient(b, gradients.ddistance_bias);
}

template <class T>
void attention_weights(const AttentionInput<T>& in, Heads<const Arithmetic<T>> lse, const AttentionRows& rows,
                       Arithmetic<T>* A, int64_t stride) {
  const Span at = span(in.sequences, rows.sequence);
  for (int64_t i = rows.begin; i < rows.end; i++, A += stride ? stride : at.S)
    for (int64_t j = 0; j < at.S; j++)
      A[j] = weight(score(in, rows.sequence, rows.head, i, j).value, *lse.at(rows.sequence, at.q0 + i, rows.head));
}

}  // namespace qkv::reference
