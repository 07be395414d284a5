// Scaled dot-product attention, O = softmax(Q Kᵀ · scale + M) V, and its gradients, for many sequences and heads at
// once. "Attention Is All You Need", section 3.2.1. Tiles and online softmax follow Dao et al., "FlashAttention"
// (2022).
//
// The result is exact and has the same bits for any number of threads; the T × S matrix is never stored. The element
// type is float, bfloat16 (storage only; arithmetic is in float) or double (the plain reference). Forward and backward
// do not allocate: the caller provides the workspace. Calls with different workspaces may run concurrently. Invalid
// arguments throw qkv::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qkv/bfloat16.h"
#include "qkv/dropout.h"

namespace [[gnu::visibility("default")]] qkv {

// Element e of head h of token n of sequence s is data[s * sequence_stride + n * token_stride + h * head_stride + e].
// Packed sequences [N, H, Dh] are {data, H * Dh, Dh}; a batch [B, H, T, Dh] is {data, Dh, T * Dh, H * T * Dh}.
template <class T>
struct Heads {
  T* data = nullptr;
  int64_t token_stride = 0, head_stride = 0, sequence_stride = 0;

  constexpr T* at(int64_t s, int64_t n, int64_t h) const {
    return data + s * sequence_stride + n * token_stride + h * head_stride;
  }
};

// The queries and keys of each sequence s in [0, count): query tokens [q_begin[s], q_end[s]) attend to key tokens
// [k_begin[s], k_end[s]). For packed sequences with offsets o, begin = o and end = o + 1. A null begin means 0, a null
// end T or S; T is required for dropout in a batch. Ranges may be empty. Query ranges must not overlap. Key ranges may
// be shared in forward and must not overlap in backward.
struct Sequences {
  int64_t count = 0;
  const int32_t *q_begin = nullptr, *q_end = nullptr, *k_begin = nullptr, *k_end = nullptr;
  int64_t T = 0, S = 0;
};

// A number for each sequence, head, query and key: m(s, h, i, j) = data[s * sequence_stride + h * head_stride +
// i * row_stride + j * key_stride], with i and j relative to the start of the sequence. A stride of 0 broadcasts.
template <class T>
struct AttentionMask {
  T* data = nullptr;
  int64_t sequence_stride = 0, head_stride = 0, row_stride = 0, key_stride = 1;
};

// A number for each head and distance from the query to the key: data[h (2R + 1) + R + δ] for δ = j − p(i), where a
// distance beyond R, the reach, counts as R, and one beyond −R as −R. T5 learns such a table:
// Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (2020).
template <class T>
struct DistanceBias {
  T* data = nullptr;  // [H, 2R + 1]
  int64_t reach = 0;  // R

  constexpr int64_t width() const { return 2 * reach + 1; }
};

// The last key p(i) that query i sees: every key (none); key i + S − T, so that the last query sees all keys
// (bottom_right); or key i (top_left).
enum class Causal { none, bottom_right, top_left };

// Query i sees only keys p(i) − left … p(i) + right, where p(i) is i if causal is top_left and i + S − T otherwise.
// −1 means no limit.
struct Window {
  int64_t left = -1, right = -1;
};

// All arguments except the arrays. Real is the type of arithmetic, Stored that of numbers that are added to scores.
template <class Real, class Stored = Real>
struct AttentionOptions {
  Sequences sequences;
  int64_t heads = 1;                       // H
  int64_t kv_heads = 0;                    // K, a divisor of H; head h reads key/value head h K / H; 0 means H
  int64_t key_width = 0, value_width = 0;  // d_k, d_v
  Real scale = 1;                          // usually 1 / √d_k
  Real softcap = 0;                        // c > 0: a scaled score s becomes c tanh(s / c); 0 leaves it unchanged
  Causal causal = Causal::none;
  Window window;
  AttentionMask<const Stored> mask;  // M, added after the softcap; less than −1e30 hides a key; null data means none
  AttentionMask<const uint8_t> allowed;  // 0 hides a key; null data means none
  const Stored* alibi = nullptr;  // [H], slopes m: adds −m |p(i) − j|. Press et al., "Train Short, Test Long"
  DistanceBias<const Stored> distance_bias;  // added after the softcap; null data means none
  Dropout dropout;  // on the weights: row is the query token, column the key within its sequence, site that of head 0

  constexpr int64_t key_value_heads() const { return kv_heads ? kv_heads : heads; }
};

template <class T>
struct AttentionInput : AttentionOptions<Arithmetic<T>, Statistic<T>> {
  Heads<const T> q, k, v;  // [N_q, H, d_k], [N_k, K, d_k], [N_k, K, d_v]
};

// Returns the bytes of workspace that a forward pass needs with the current number of threads. Reads only shapes.
template <class T>
size_t attention_workspace(const AttentionInput<T>& in);

// Assigns out: [N_q, H, d_v] and lse: [N_q, H, 1], the natural logarithm of Σ_j exp(s_ij). For a query that sees no key
// out is 0 and lse −∞. lse.data may be null. lse is one float, so backward is inaccurate for rows whose scores all lie
// beyond ±1e5. A NaN in a query, or in a key or value that it sees, makes only its row NaN.
template <class T>
void attention(const AttentionInput<T>& in, Heads<T> out, Heads<Statistic<T>> lse, std::span<std::byte> workspace);

// The results of backward. dq, dk, dv have the shapes of q, k, v. dmask has the shape of M; where a stride is 0, the
// gradient is the sum over all that share the entry. ddistance_bias has the shape of distance_bias and is the sum over
// all queries and keys at a distance. Null data skips the last two.
template <class T>
struct AttentionGradients {
  Heads<T> dq, dk, dv;
  AttentionMask<Statistic<T>> dmask;
  Statistic<T>* ddistance_bias = nullptr;
};

// Returns the bytes of workspace that a backward pass needs.
template <class T>
size_t attention_backward_workspace(const AttentionInput<T>& in);

// Assigns the gradients, given dout: [N_q, H, d_v] and the results of forward. With the weights A,
//   dV = Aᵀ dO,  dA = dO Vᵀ,  D_i = dO_i · O_i,  dM = A ∘ (dA − D),  dQ = scale · dM K,  dK = scale · dMᵀ Q,
// where a softcap replaces dM by dM ∘ (1 − tanh²) in the last two. A is recomputed from lse. Queries that see no key
// and keys that no query sees get zeros.
template <class T>
void attention_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const Statistic<T>> lse,
                        Heads<const T> dout, const AttentionGradients<T>& gradients, std::span<std::byte> workspace);

// Queries [begin, end) of one head of one sequence.
struct AttentionRows {
  int64_t sequence = 0, head = 0, begin = 0, end = 0;
};

// Assigns the weights A_ij = exp(s_ij − lse_i) of some rows, without dropout. A: [end − begin, S] with rows `stride`
// apart; 0 means S. A row sums to 1, or is 0 if the query sees no key.
template <class T>
void attention_weights(const AttentionInput<T>& in, Heads<const Statistic<T>> lse, const AttentionRows& rows,
                       Statistic<T>* A, int64_t stride = 0);

}  // namespace qkv
