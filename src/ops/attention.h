// Scaled dot-product attention, O = softmax(Q Kᵀ · scale + M) V, over packed sequences, many heads at once.
// "Attention Is All You Need", section 3.2.1; tiles and online softmax after Dao et al., "FlashAttention" (2022).
#pragma once

#include <cstdint>

#include "core/arena.h"
#include "core/matrix.h"
#include "ops/dropout.h"

namespace qkv {

// All heads of a run of tokens: element e of head h of token n is data[n * token_stride + h * head_stride + e], so a
// packed [N, 3 H Dh] product is read in place.
template <class Real>
struct Heads {
  Real* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;

  Real* at(int64_t token, int64_t head) const { return data + token * token_stride + head * head_stride; }
};

// Which queries look at which keys: queries [q_begin[s], q_end[s]) see keys [k_begin[s], k_end[s]), for each sequence
// s in [0, count). With offsets o of packed sequences, begin = o and end = o + 1. Either range may be empty. Query
// ranges do not overlap; key ranges may be shared in forward and must not overlap in backward.
struct Sequences {
  int64_t count = 0;
  const int32_t *q_begin = nullptr, *q_end = nullptr, *k_begin = nullptr, *k_end = nullptr;
};

// M, added to the scaled scores: m(s, h, i, j) = data[s * sequence_stride + h * head_stride + i * row_stride + j], i
// and j counted from the start of the sequence. A stride of 0 repeats. −∞ hides a key. No mask where data is null.
template <class Real>
struct AttentionMask {
  const Real* data = nullptr;
  int64_t sequence_stride = 0, head_stride = 0, row_stride = 0;
};

// Which of the keys 0 … S − 1 query i of T sees: all; 0 … i + (S − T), so that the last query sees every key; 0 … i.
enum class Causal { none, bottom_right, top_left };

template <class Real>
struct AttentionInput {
  Heads<const Real> q, k, v;  // [N_q, H, d_k], [N_k, H, d_k], [N_k, H, d_v]
  Sequences sequences;
  int64_t heads = 1;
  int64_t key_width = 0, value_width = 0;  // d_k, d_v
  Real scale = 1;                          // usually 1 / √d_k
  Causal causal = Causal::none;
  AttentionMask<Real> mask;
  Dropout dropout;  // on the weights; row = index of the query token, column = key within its sequence, site + head
};

// out: [N_q, H, d_v]; lse: [N_q, H], the natural logarithm of Σ_j exp(s_ij + m_ij), −∞ where a query sees no key: such
// a row gives zeros. The T×S matrix is never held. lse may be null.
template <class Real>
void attention(const AttentionInput<Real>& in, Heads<Real> out, Real* lse, Arena& scratch);

// Given dout: [N_q, H, d_v] and what forward gave, assigns dq, dk, dv: shapes of q, k, v. With A the weights,
//   dV = Aᵀ dO,  dA = dO Vᵀ,  D_i = dO_i · O_i,  dS = A ∘ (dA − D),  dQ = scale · dS K,  dK = scale · dSᵀ Q.
// A is recomputed from lse. Rows that see nothing get zeros; so do keys that nobody sees.
template <class Real>
void attention_backward(const AttentionInput<Real>& in, Heads<const Real> out, const Real* lse, Heads<const Real> dout,
                        Heads<Real> dq, Heads<Real> dk, Heads<Real> dv, Arena& scratch);

// A = exp(s + m − lse) of one sequence and head, without dropout; A: [T, S], rows sum to one.
template <class Real>
void attention_weights(const AttentionInput<Real>& in, const Real* lse, int64_t sequence, int64_t head, Matrix<Real> A);

}  // namespace qkv
