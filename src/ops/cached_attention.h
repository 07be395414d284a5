// Scaled dot-product attention with a key-value cache, for decoding: one query per hypothesis, over keys and values in
// arbitrary rows of the cache,
//   y_n = Σ_j a_nj v_j,   a_n = softmax_j(scale · q_n · k_j)
// for every head, over the rows j of hypothesis n, with the softcap, ALiBi and distance bias of qkv/attention.h.
// Hypotheses share the rows of the tokens that they share, so nothing is copied when a hypothesis branches.
#pragma once

#include <cstdint>

#include "core/arena.h"
#include "core/cached_keys.h"
#include "qkv/attention.h"

namespace qkv {

// The input of cached_attention.
template <class Real>
struct CachedAttention {
  Matrix<const Real> q;      // [N, H d_k]
  Matrix<const Real> cache;  // [rows, K (d_k + d_v)]: the keys of all heads, then their values
  CachedKeys keys;           // in order of position; the query is at the position of the last key
  int64_t heads = 0;         // H
  int64_t kv_heads = 0;      // K, must divide H; head h reads key/value head h K / H
  int64_t key_width = 0, value_width = 0;
  Arithmetic<Real> scale = 1;    // usually 1 / √d_k
  Arithmetic<Real> softcap = 0;  // c > 0: the scaled scores s become c tanh(s / c); 0: none
  const Statistic<Real>* alibi =
      nullptr;  // [H], slopes m, or null: subtracts m j from the score of a key j positions before the query
  DistanceBias<const Statistic<Real>> distance_bias = {};  // null data means none
};

// y: [N, H d_v] is assigned; zeros for a query without keys.
template <class Real>
void cached_attention(const CachedAttention<Real>& in, Matrix<Real> y, Arena& scratch);

}  // namespace qkv
