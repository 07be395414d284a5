// Attention of a query by a warp, not optimized: a lane has every 32nd key.
//   O_i = Σ_j A_ij v_j,   A_ij = exp(s_ij − lse_i),   lse_i = log Σ_j exp(s_ij)
#pragma once

#include <cmath>
#include <limits>

#include "attention.h"

namespace qkv::cuda {

// Computes out and lse of query i of a head; lse.data may be null. The sums over j begin at the first key of the
// sequence and run in steps of 32, so that they depend on nothing else.
template <class T>
__device__ void attend(const AttentionInput<T>& in, int64_t s, int64_t h, int64_t i, float (&weights)[kLanes],
                       Heads<T> out, Heads<float> lse) {
  const Span at = span(in.sequences, s);
  const int lane = lane_number();
  const TokenRange seen = visible_keys(in, at, i);
  const int64_t first = seen.begin / kLanes * kLanes;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t j = first + lane; j < seen.end; j += kLanes)
    largest = larger(largest, reference::score(in, s, h, i, j).value);
  largest = warp_max(largest);
  const bool sees_none = largest == -std::numeric_limits<float>::infinity();

  for (int64_t begin = 0; begin < in.value_width; begin += kColumns) {
    float sum = 0;
    ColumnSums columns = {};
    for (int64_t j0 = sees_none ? seen.end : first; j0 < seen.end; j0 += kLanes) {
      const int64_t j = j0 + lane;
      const float a = j < at.S ? reference::weight(reference::score(in, s, h, i, j).value, largest) : 0;
      sum += a;
      share(weights, a == 0 ? 0 : a * reference::kept(in, s, h, i, j));
      add_rows_weighted(
          weights, begin, in.value_width, [&](int l) { return in.v.at(s, at.k0 + j0 + l, kv_head(in, h)); }, columns);
    }
    sum = warp_sum(sum);
    store_columns(columns, sees_none ? 0 : 1 / sum, begin, in.value_width, out.at(s, at.q0 + i, h));
    if (begin == 0 && lane == 0 && lse.data) *lse.at(s, at.q0 + i, h) = sees_none ? largest : largest + std::log(sum);
  }
}

}  // namespace qkv::cuda
