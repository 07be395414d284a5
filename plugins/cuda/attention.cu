// Scaled dot-product attention by simple kernels, not optimized: a warp has a query of a head, a lane every 32nd
// key. qkv/attention.h.
//   O_i = Σ_j A_ij v_j,   A_ij = exp(s_ij − lse_i),   lse_i = log Σ_j exp(s_ij)
#include <cmath>
#include <limits>

#include "attention.h"
#include "table.h"

namespace qkv::cuda {
namespace kernel {

// Computes out and lse; lse.data may be null. The sums over j begin at the first key of the sequence and run in steps
// of 32, so that they depend on nothing else.
template <class T>
__global__ void attention(AttentionInput<T> in, int64_t longest, Heads<T> out, Heads<float> lse) {
  __shared__ LaneNumbers shared;
  const auto [s, h, i] = token_of(warp_number(), in.heads, longest);
  if (s >= in.sequences.count) return;
  const Span at = span(in.sequences, s);
  if (i >= at.T) return;
  const int lane = lane_number();
  float(&weights)[kLanes] = shared[threadIdx.x / kLanes];

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

// A_ij of some queries of a head, without dropout. A thread has a query and a key.
template <class T>
__global__ void attention_weights(AttentionInput<T> in, Heads<const float> lse, AttentionRows rows, int64_t longest,
                                  float* A, int64_t stride) {
  const Span at = span(in.sequences, rows.sequence);
  const Place place = place_in(rows.end - rows.begin, longest);
  const int64_t i = rows.begin + place.row, j = place.col;
  if (!place.inside || j >= at.S) return;
  A[place.row * (stride ? stride : at.S) + j] = reference::weight(
      reference::score(in, rows.sequence, rows.head, i, j).value, *lse.at(rows.sequence, at.q0 + i, rows.head));
}

}  // namespace kernel

namespace {

void attention(qkv_element e, const qkv_attention* in, qkv_heads out, qkv_heads lse) {
  with_type(e, [&]<class T>(T) {
    launch_warps(in->sequences * in->heads * in->longest_queries, kernel::attention<T>, attention_input<T>(*in),
                 in->longest_queries, heads<T>(out), heads<float>(lse));
  });
}

void attention_weights(qkv_element e, const qkv_attention* in, qkv_heads lse, int64_t sequence, int64_t head,
                       int64_t begin, int64_t end, float* A, int64_t stride) {
  with_type(e, [&]<class T>(T) {
    launch_elements(end - begin, in->longest_keys, kernel::attention_weights<T>, attention_input<T>(*in),
                    heads<const float>(lse), AttentionRows{sequence, head, begin, end}, in->longest_keys, A, stride);
  });
}

}  // namespace

void add_attention(qkv_device& t) {
  t.attention = entry<attention>;
  t.attention_weights = entry<attention_weights>;
}

}  // namespace qkv::cuda
