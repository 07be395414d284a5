#include <algorithm>
#include <stdexcept>

#include "host_device/arguments.h"
#include "host_device/table.h"
#include "ops/attention_view.h"
#include "ops/reference/attention_reference.h"
#include "ops/reference/cached_attention_reference.h"

namespace qkv::host_device {
namespace {

template <class T>
Heads<T> heads(const qkv_heads& h) {
  return {static_cast<T*>(h.data), h.token_stride, h.head_stride, h.sequence_stride};
}

AttentionMask<float> mask_of(const qkv_mask& m) {
  return {m.data, m.sequence_stride, m.head_stride, m.row_stride, m.key_stride};
}

// Throws unless the sizes from which a device computes its grid are those of the sequences.
void check_sizes(const qkv_attention& a) {
  const Sequences sequences = {a.sequences, a.q_begin, a.q_end, a.k_begin, a.k_end, a.T, a.S};
  int64_t queries = 0, keys = 0, longest_queries = 0, longest_keys = 0;
  for (int64_t s = 0; s < a.sequences; s++) {
    const Span at = span(sequences, s);
    queries += at.T, keys += at.S;
    longest_queries = std::max(longest_queries, at.T), longest_keys = std::max(longest_keys, at.S);
  }
  if (a.queries != queries || a.keys != keys || a.longest_queries != longest_queries || a.longest_keys != longest_keys)
    throw std::logic_error("sizes are not those of the sequences");
}

void check_sizes(const qkv_cached_attention& a) {
  int64_t longest = 0, rows = 0;
  for (int64_t i = 0; i < a.q.rows; i++) {
    longest = std::max<int64_t>(longest, a.end[i] - a.begin[i]);
    rows = std::max<int64_t>(rows, a.end[i]);
  }
  if (a.longest_keys != longest || a.row_count != (a.rows ? rows : 0))
    throw std::logic_error("sizes are not those of the queries");
}

template <class T>
AttentionInput<T> input(const qkv_attention& a) {
  check_sizes(a);
  constexpr Causal kinds[] = {Causal::none, Causal::bottom_right, Causal::top_left};
  AttentionInput<T> in;
  in.sequences = {a.sequences, a.q_begin, a.q_end, a.k_begin, a.k_end, a.T, a.S};
  in.heads = a.heads, in.kv_heads = a.kv_heads, in.key_width = a.key_width, in.value_width = a.value_width;
  in.scale = a.scale, in.softcap = a.softcap, in.causal = kinds[a.causal];
  in.window = {a.left, a.right};
  const AttentionMask<float> mask = mask_of(a.mask);
  in.mask = {mask.data, mask.sequence_stride, mask.head_stride, mask.row_stride, mask.key_stride};
  in.alibi = a.alibi;
  in.distance_bias = {a.distance_bias, a.reach};
  in.dropout = dropout_of(a.dropout);
  in.q = heads<const T>(a.q), in.k = heads<const T>(a.k), in.v = heads<const T>(a.v);
  return in;
}

// Calls f(T()), T the type of the elements.
template <class F>
void with_type(qkv_element e, F&& f) {
  e == QKV_BFLOAT16 ? f(bfloat16()) : f(float());
}

void attention(qkv_element e, const qkv_attention* in, qkv_heads out, qkv_heads lse) {
  with_type(e, [&]<class T>(T) { reference::attention<T>(input<T>(*in), heads<T>(out), heads<float>(lse)); });
}

void attention_backward(qkv_element e, const qkv_attention* in, qkv_heads out, qkv_heads lse, qkv_heads dout,
                        const qkv_attention_gradients* g) {
  with_type(e, [&]<class T>(T) {
    const AttentionInput<T> a = input<T>(*in);
    const AttentionGradients<T> gradients = {heads<T>(g->dq), heads<T>(g->dk), heads<T>(g->dv), mask_of(g->dmask),
                                             g->ddistance_bias};
    reference::attention_backward<T>({a, heads<const T>(out), heads<const float>(lse), heads<const T>(dout)},
                                     gradients);
  });
}

void attention_weights(qkv_element e, const qkv_attention* in, qkv_heads lse, int64_t sequence, int64_t head,
                       int64_t begin, int64_t end, float* A, int64_t stride) {
  with_type(e, [&]<class T>(T) {
    reference::attention_weights<T>(input<T>(*in), heads<const float>(lse), {sequence, head, begin, end}, A, stride);
  });
}

void cached_attention(qkv_element e, const qkv_cached_attention* a, qkv_matrix y) {
  check_sizes(*a);
  const Floats q(e, a->q), cache(e, a->cache);
  reference::cached_attention<float>({q,
                                      cache,
                                      {a->rows, a->begin, a->end},
                                      a->heads,
                                      a->kv_heads,
                                      a->key_width,
                                      a->value_width,
                                      a->scale,
                                      a->softcap,
                                      a->alibi,
                                      {a->distance_bias, a->reach}},
                                     Result(e, y));
}

}  // namespace

void add_attention(qkv_device& t) {
  t.attention = entry<attention>;
  t.attention_backward = entry<attention_backward>;
  t.attention_weights = entry<attention_weights>;
  t.cached_attention = entry<cached_attention>;
}

}  // namespace qkv::host_device
