// Scaled dot-product attention and its weights: qkv/attention.h.
#include <algorithm>

#include "attention_query.h"
#include "attention_tiles.h"
#include "table.h"

namespace qkv::cuda {
namespace kernel {

template <class T>
__global__ void attention(AttentionInput<T> in, int64_t longest, Heads<T> out, Heads<float> lse) {
  __shared__ LaneNumbers shared;
  const auto [s, h, i] = token_of(warp_number(), in.heads, longest);
  if (s < in.sequences.count && i < span(in.sequences, s).T)
    attend(in, s, h, i, shared[threadIdx.x / kLanes], out, lse);
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

template <class T>
void attend_all(const AttentionInput<T>& in, int64_t longest, Heads<T> out, Heads<float> lse) {
  launch_warps(in.sequences.count * in.heads * longest, kernel::attention<T>, in, longest, out, lse);
}

// Matrix instructions are for bfloat16 and the usual widths.
void attend_all(const AttentionInput<bfloat16>& in, int64_t longest, Heads<bfloat16> out, Heads<float> lse) {
  const int64_t width = std::max(in.key_width, in.value_width);
  if (width <= 32)
    tiles::attention<32>(in, longest, out, lse);
  else if (width <= 64)
    tiles::attention<64>(in, longest, out, lse);
  else if (width <= 128)
    tiles::attention<128>(in, longest, out, lse);
  else
    attend_all<bfloat16>(in, longest, out, lse);
}

void attention(qkv_element e, const qkv_attention* in, qkv_heads out, qkv_heads lse) {
  with_type(e, [&]<class T>(T) {
    attend_all(attention_input<T>(*in), in->longest_queries, heads<T>(out), heads<float>(lse));
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
