// Scaled dot-product attention, O = softmax(Q Kᵀ · scale + M) V, and its gradients, over many sequences and heads at
// once. "Attention Is All You Need", section 3.2.1; tiles and online softmax after Dao et al., "FlashAttention" (2022).
//
// Exact, with the T×S matrix never held; the same bits for any number of threads. T is one of float, bfloat16 (stored;
// computed in float) and double (the plain reference). Forward and backward do not allocate: the caller brings the
// workspace. Two calls may run at the same time with workspaces of their own. Errors are thrown as qkv::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qkv/bfloat16.h"
#include "qkv/dropout.h"

namespace qkv {

// Element e of head h of token n of sequence s is data[s * sequence_stride + n * token_stride + h * head_stride + e].
// Packed sequences [N, H, Dh] are {data, H * Dh, Dh}; a batch [B, H, T, Dh] is {data, Dh, T * Dh, H * T * Dh}.
template <class T>
struct Heads {
  T* data = nullptr;
  int64_t token_stride = 0, head_stride = 0, sequence_stride = 0;

  T* at(int64_t s, int64_t n, int64_t h) const {
    return data + s * sequence_stride + n * token_stride + h * head_stride;
  }
};

// Which queries look at which keys: tokens [q_begin[s], q_end[s]) at tokens [k_begin[s], k_end[s]), for each sequence s
// in [0, count). With offsets o of packed sequences, begin = o and end = o + 1. A null begin stands for 0, a null end
// for T or S; T must be given for dropout in a batch. Ranges may be empty. Query ranges do not overlap; key ranges may
// be shared in forward and must not overlap in backward.
struct Sequences {
  int64_t count = 0;
  const int32_t *q_begin = nullptr, *q_end = nullptr, *k_begin = nullptr, *k_end = nullptr;
  int64_t T = 0, S = 0;
};

// One number for each sequence, head, query and key: m(s, h, i, j) = data[s * sequence_stride + h * head_stride +
// i * row_stride + j * key_stride], i and j counted from the start of the sequence. A stride of 0 repeats.
template <class T>
struct AttentionMask {
  T* data = nullptr;
  int64_t sequence_stride = 0, head_stride = 0, row_stride = 0, key_stride = 1;
};

// Which key stands at the place p(i) of query i, and is the last that it sees: none of it; key i + S − T, so that the
// last query sees every key; key i.
enum class Causal { none, bottom_right, top_left };

// Query i sees only keys p(i) − left … p(i) + right; p(i) is i + S − T unless causality is top_left. −1: no limit.
struct Window {
  int64_t left = -1, right = -1;
};

// All but the arrays; Real is what is computed in.
template <class Real>
struct AttentionOptions {
  Sequences sequences;
  int64_t heads = 1;                       // H
  int64_t kv_heads = 0;                    // K, a divisor of H; head h reads key/value head h K / H. 0 stands for H
  int64_t key_width = 0, value_width = 0;  // d_k, d_v
  Real scale = 1;                          // usually 1 / √d_k
  Real softcap = 0;                        // c > 0: the scaled scores s become c tanh(s / c)
  Causal causal = Causal::none;
  Window window;
  AttentionMask<const Real> mask;  // M, added after the softcap; less than −1e30 hides a key; none where data is null
  AttentionMask<const uint8_t> allowed;  // 0 hides a key; none where data is null
  const Real* alibi = nullptr;  // [H], slopes m: adds −m |p(i) − j|. Press et al., "Train Short, Test Long"
  Dropout dropout;  // on the weights; row = index of the query token, column = key within its sequence, site + head

  int64_t key_value_heads() const { return kv_heads ? kv_heads : heads; }
};

template <class T>
struct AttentionInput : AttentionOptions<Arithmetic<T>> {
  Heads<const T> q, k, v;  // [N_q, H, d_k], [N_k, K, d_k], [N_k, K, d_v]
};

// Bytes of workspace for a forward pass over `in` with the present number of threads; only shapes are read.
template <class T>
size_t attention_workspace(const AttentionInput<T>& in);

// out: [N_q, H, d_v]; lse: [N_q, H, 1], the natural logarithm of Σ_j exp(s_ij), −∞ where a query sees no key: such a
// row gives zeros. lse.data may be null; as it is one float, backward is coarse for rows all of whose scores lie beyond
// ±1e5. NaN in a query, or in a key or value that it sees, gives NaN in its row alone.
template <class T>
void attention(const AttentionInput<T>& in, Heads<T> out, Heads<Arithmetic<T>> lse, std::span<std::byte> workspace);

// What backward assigns. dq, dk, dv: shapes of q, k, v. dmask: as large as M; where its stride is 0 the gradient is the
// sum over what shares the entry. No dmask where its data is null.
template <class T>
struct AttentionGradients {
  Heads<T> dq, dk, dv;
  AttentionMask<Arithmetic<T>> dmask;
};

// Bytes of workspace for a backward pass.
template <class T>
size_t attention_backward_workspace(const AttentionInput<T>& in);

// Given dout: [N_q, H, d_v] and what forward gave. With A the weights,
//   dV = Aᵀ dO,  dA = dO Vᵀ,  D_i = dO_i · O_i,  dM = A ∘ (dA − D),  dQ = scale · dM K,  dK = scale · dMᵀ Q,
// with dM ∘ (1 − tanh²) in the last two under a softcap. A is recomputed from lse. Rows that see nothing get zeros; so
// do keys that nobody sees.
template <class T>
void attention_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const Arithmetic<T>> lse,
                        Heads<const T> dout, const AttentionGradients<T>& gradients, std::span<std::byte> workspace);

// Queries [begin, end) of one head of one sequence.
struct AttentionRows {
  int64_t sequence = 0, head = 0, begin = 0, end = 0;
};

// A_ij = exp(s_ij − lse_i) for some rows, without dropout. A: [end − begin, S], its rows `stride` apart (0: S); a row
// sums to one, or is zero where nothing is seen.
template <class T>
void attention_weights(const AttentionInput<T>& in, Heads<const Arithmetic<T>> lse, const AttentionRows& rows,
                       Arithmetic<T>* A, int64_t stride = 0);

}  // namespace qkv
