// Attention while decoding: one query a hypothesis over keys and values that lie in any rows of a cache,
//   y_n = Σ_j a_nj v_j,  a_n = softmax_j(q_n · k_j / √d_k)  for every head, over the rows j that hypothesis n has,
// with the softcap and ALiBi of qkv/attention.h.
// Hypotheses share the rows of the tokens that they share, so that nothing is copied when one branches.
#pragma once

#include <cstdint>

#include "core/arena.h"

namespace qkv {

// The cache's rows of each query n: rows[begin[n]] … rows[end[n] − 1], or begin[n] … end[n] − 1 themselves where `rows`
// is null.
struct CachedKeys {
  const int32_t* rows = nullptr;
  const int32_t *begin = nullptr, *end = nullptr;  // [N]
};

template <class Real>
struct CachedAttention {
  Matrix<const Real> q;      // [N, H d_k]
  Matrix<const Real> cache;  // [rows, K (d_k + d_v)]: the keys of all heads, then their values
  CachedKeys keys;           // in the order of their places; the query stands at the last one's
  int64_t heads = 0;         // H
  int64_t kv_heads = 0;      // K, a divisor of H; head h reads key/value head h K / H
  int64_t key_width = 0, value_width = 0;
  Real softcap = 0;             // c > 0: the scaled scores s become c tanh(s / c)
  const Real* alibi = nullptr;  // [H], slopes m: the key j places before the query has m j less
};

// y: [N, H d_v]; zeros for a query without keys.
template <class Real>
void cached_attention(const CachedAttention<Real>& in, Matrix<Real> y, Arena& scratch);

}  // namespace qkv
