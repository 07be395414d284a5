// Attention, loop by loop, as the formulas in attention.h say. The fast kernels are tested against it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/fail.h"
#include "ops/attention.h"

namespace qkv::reference {

// Throws Error if heads or widths are not positive.
template <class Real>
void check_attention(const AttentionInput<Real>& in) {
  if (in.heads < 1 || in.key_width < 1 || in.value_width < 1)
    fail("attention: {} heads of key width {} and value width {}, wanted at least 1 of each", in.heads, in.key_width,
         in.value_width);
}

// One sequence: its queries are tokens q0 … q0 + T − 1, its keys k0 … k0 + S − 1.
struct Span {
  int64_t q0, T, k0, S;
};

inline Span span(const Sequences& sequences, int64_t s) {
  return {sequences.q_begin[s], int64_t{sequences.q_end[s]} - sequences.q_begin[s], sequences.k_begin[s],
          int64_t{sequences.k_end[s]} - sequences.k_begin[s]};
}

// How many keys, from the first, query i sees.
inline int64_t visible_keys(const Span& at, Causal causal, int64_t i) {
  if (causal == Causal::none) return at.S;
  return std::clamp<int64_t>(causal == Causal::top_left ? i + 1 : i + 1 + at.S - at.T, 0, at.S);
}

// The first query that sees key j; T or more if none does.
inline int64_t first_query(const Span& at, Causal causal, int64_t j) {
  if (causal == Causal::none) return 0;
  return causal == Causal::top_left ? j : std::max<int64_t>(0, j + at.T - at.S);
}

// s_j + m_j of query i for the keys that it sees: scale · q_i · k_j + m(s, h, i, j).
template <class Real>
std::vector<Real> scores(const AttentionInput<Real>& in, int64_t s, int64_t h, int64_t i) {
  const Span at = span(in.sequences, s);
  std::vector<Real> row(static_cast<size_t>(visible_keys(at, in.causal, i)));
  const Real* q = in.q.at(at.q0 + i, h);
  for (size_t j = 0; j < row.size(); j++) {
    const int64_t key = static_cast<int64_t>(j);
    const Real* k = in.k.at(at.k0 + key, h);
    Real dot = 0;
    for (int64_t e = 0; e < in.key_width; e++) dot += q[e] * k[e];
    row[j] = in.scale * dot;
    const AttentionMask<Real>& m = in.mask;
    if (m.data) row[j] += m.data[s * m.sequence_stride + h * m.head_stride + i * m.row_stride + key];
  }
  return row;
}

// log Σ_j exp(s_j), through the largest; −∞ if there is nothing to see.
template <class Real>
Real log_sum_exp(const std::vector<Real>& row) {
  Real largest = -std::numeric_limits<Real>::infinity();
  for (Real x : row) largest = std::max(largest, x);
  if (std::isinf(largest)) return largest;
  Real sum = 0;
  for (Real x : row) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

// α_j = exp(s_j − lse), or zeros where lse is −∞.
template <class Real>
std::vector<Real> weights(const AttentionInput<Real>& in, int64_t s, int64_t h, int64_t i, Real lse) {
  std::vector<Real> row = scores(in, s, h, i);
  for (Real& x : row) x = std::isinf(lse) ? 0 : std::exp(x - lse);
  return row;
}

// What dropout multiplies α_ij with: 0 or 1 / (1 − p).
template <class Real>
Real kept(const AttentionInput<Real>& in, int64_t query_token, int64_t h, int64_t key) {
  Dropout drop = in.dropout;
  drop.site += static_cast<uint32_t>(h);
  return drop.keeps(query_token, key) ? static_cast<Real>(drop.scale()) : Real(0);
}

template <class Real>
void attention(const AttentionInput<Real>& in, Heads<Real> out, Real* lse) {
  check_attention(in);
  for (int64_t s = 0; s < in.sequences.count; s++)
    for (int64_t h = 0; h < in.heads; h++) {
      const Span at = span(in.sequences, s);
      for (int64_t i = 0; i < at.T; i++) {
        const Real row_lse = log_sum_exp(scores(in, s, h, i));
        const std::vector<Real> a = weights(in, s, h, i, row_lse);
        Real* o = out.at(at.q0 + i, h);
        std::fill(o, o + in.value_width, Real(0));
        for (size_t j = 0; j < a.size(); j++) {
          const int64_t key = static_cast<int64_t>(j);
          const Real weight = a[j] * kept(in, at.q0 + i, h, key);
          const Real* v = in.v.at(at.k0 + key, h);
          for (int64_t e = 0; e < in.value_width; e++) o[e] += weight * v[e];
        }
        if (lse) lse[(at.q0 + i) * in.heads + h] = row_lse;
      }
    }
}

template <class Real>
void attention_backward(const AttentionInput<Real>& in, Heads<const Real> out, const Real* lse, Heads<const Real> dout,
                        Heads<Real> dq, Heads<Real> dk, Heads<Real> dv) {
  check_attention(in);
  for (int64_t s = 0; s < in.sequences.count; s++)
    for (int64_t h = 0; h < in.heads; h++) {
      const Span at = span(in.sequences, s);
      for (int64_t j = 0; j < at.S; j++) {
        std::fill_n(dk.at(at.k0 + j, h), in.key_width, Real(0));
        std::fill_n(dv.at(at.k0 + j, h), in.value_width, Real(0));
      }
      for (int64_t i = 0; i < at.T; i++) {
        const int64_t token = at.q0 + i;
        const Real *q = in.q.at(token, h), *o = out.at(token, h), *d_o = dout.at(token, h);
        Real* d_q = dq.at(token, h);
        std::fill_n(d_q, in.key_width, Real(0));
        Real D = 0;  // Σ_j A_ij dA_ij = dO_i · O_i
        for (int64_t e = 0; e < in.value_width; e++) D += d_o[e] * o[e];
        const std::vector<Real> a = weights(in, s, h, i, lse[token * in.heads + h]);
        for (size_t j = 0; j < a.size(); j++) {
          const int64_t key = static_cast<int64_t>(j);
          const Real *k = in.k.at(at.k0 + key, h), *v = in.v.at(at.k0 + key, h);
          Real *d_k = dk.at(at.k0 + key, h), *d_v = dv.at(at.k0 + key, h);
          const Real keep = kept(in, token, h, key);
          Real dA = 0;
          for (int64_t e = 0; e < in.value_width; e++) {
            d_v[e] += a[j] * keep * d_o[e];
            dA += keep * d_o[e] * v[e];
          }
          const Real dS = in.scale * a[j] * (dA - D);
          for (int64_t e = 0; e < in.key_width; e++) {
            d_q[e] += dS * k[e];
            d_k[e] += dS * q[e];
          }
        }
      }
    }
}

template <class Real>
void attention_weights(const AttentionInput<Real>& in, const Real* lse, int64_t sequence, int64_t head,
                       Matrix<Real> A) {
  const Span at = span(in.sequences, sequence);
  for (int64_t i = 0; i < at.T; i++) {
    const std::vector<Real> row = weights(in, sequence, head, i, lse[(at.q0 + i) * in.heads + head]);
    std::fill_n(A.row(i), at.S, Real(0));
    std::copy(row.begin(), row.end(), A.row(i));
  }
}

}  // namespace qkv::reference
