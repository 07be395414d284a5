#include "qkv/attention.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"
#include "device/ops/command.h"
#include "ops/attention_view.h"
#include "ops/cached_attention.h"

namespace qkv {
namespace {

template <class T>
qkv_heads raw(const Heads<T>& h) {
  return {raw(h.data), h.token_stride, h.head_stride, h.sequence_stride};
}

template <class T>
qkv_mask raw(const AttentionMask<T>& m) {
  return {floats(m.data), m.sequence_stride, m.head_stride, m.row_stride, m.key_stride};
}

qkv_causal raw(Causal causal) {
  switch (causal) {
    case Causal::none:
      return QKV_NOT_CAUSAL;
    case Causal::bottom_right:
      return QKV_BOTTOM_RIGHT;
    case Causal::top_left:
      return QKV_TOP_LEFT;
  }
  return QKV_NOT_CAUSAL;
}

template <class T>
qkv_attention raw(const AttentionInput<T>& in, Command& c) {
  if (in.allowed.data) fail("attention: the device has no boolean masks");
  const Sequences& s = in.sequences;
  const auto numbers = [&](const int32_t* of_sequences) {
    return of_sequences ? c.numbers(std::span(of_sequences, to_size(s.count))) : nullptr;
  };
  const Longest longest(s);
  qkv_attention a = {};
  a.sequences = s.count;
  a.q_begin = numbers(s.q_begin), a.q_end = numbers(s.q_end), a.k_begin = numbers(s.k_begin),
  a.k_end = numbers(s.k_end);
  a.T = s.T, a.S = s.S;
  for (int64_t i = 0; i < s.count; i++) {
    const Span at = span(s, i);
    a.queries += at.T, a.keys += at.S;
  }
  a.longest_queries = longest.queries, a.longest_keys = longest.keys;
  a.heads = in.heads, a.kv_heads = in.key_value_heads(), a.key_width = in.key_width, a.value_width = in.value_width;
  a.scale = in.scale, a.softcap = in.softcap, a.causal = raw(in.causal);
  a.left = in.window.left, a.right = in.window.right;
  a.mask = raw(in.mask);
  a.alibi = floats(in.alibi);
  a.distance_bias = floats(in.distance_bias.data), a.reach = in.distance_bias.reach;
  a.dropout = qkv::raw(in.dropout);
  a.q = raw(in.q), a.k = raw(in.k), a.v = raw(in.v);
  return a;
}

}  // namespace

// The device has the workspace.
template <class T>
size_t attention_workspace(const AttentionInput<T>&) {
  return 0;
}
template <class T>
size_t attention_backward_workspace(const AttentionInput<T>&) {
  return 0;
}

template <class T>
void attention(const AttentionInput<T>& in, Heads<T> out, Heads<Statistic<T>> lse, std::span<std::byte>) {
  Command c("attention");
  const qkv_attention a = raw(in, c);
  c(c->attention(kElement<T>, &a, raw(out), raw(lse)));
}

template <class T>
void attention_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const Statistic<T>> lse,
                        Heads<const T> dout, const AttentionGradients<T>& gradients, std::span<std::byte>) {
  Command c("attention_backward");
  const qkv_attention a = raw(in, c);
  const qkv_attention_gradients g = {raw(gradients.dq), raw(gradients.dk), raw(gradients.dv), raw(gradients.dmask),
                                     floats(gradients.ddistance_bias)};
  c(c->attention_backward(kElement<T>, &a, raw(out), raw(lse), raw(dout), &g));
}

template <class T>
void attention_weights(const AttentionInput<T>& in, Heads<const Statistic<T>> lse, const AttentionRows& rows,
                       Statistic<T>* A, int64_t stride) {
  Command c("attention_weights");
  const qkv_attention a = raw(in, c);
  c(c->attention_weights(kElement<T>, &a, raw(lse), rows.sequence, rows.head, rows.begin, rows.end, floats(A), stride));
}

template <class Real>
void cached_attention(const CachedAttention<Real>& in, Matrix<Real> y, Arena&) {
  Command c("cached_attention");
  const CachedKeys& keys = in.keys;
  const auto of_queries = [&](const int32_t* p) { return c.numbers(std::span(p, to_size(y.rows))); };
  qkv_cached_attention a = {};
  a.q = qkv::raw(in.q), a.cache = qkv::raw(in.cache);
  if (keys.rows) {
    const int32_t last = y.rows > 0 ? *std::max_element(keys.end, keys.end + y.rows) : 0;
    a.rows = c.numbers(std::span(keys.rows, to_size(last)));
    a.row_count = last;
  }
  a.begin = of_queries(keys.begin), a.end = of_queries(keys.end);
  for (int64_t i = 0; i < y.rows; i++) a.longest_keys = std::max<int64_t>(a.longest_keys, keys.end[i] - keys.begin[i]);
  a.heads = in.heads, a.kv_heads = in.kv_heads, a.key_width = in.key_width, a.value_width = in.value_width;
  a.scale = in.scale, a.softcap = in.softcap;
  a.alibi = floats(in.alibi);
  a.distance_bias = floats(in.distance_bias.data), a.reach = in.distance_bias.reach;
  c(c->cached_attention(kElement<Real>, &a, qkv::raw(y)));
}

#define QKV_INSTANTIATE(T)                                                                                    \
  template size_t attention_workspace(const AttentionInput<T>&);                                              \
  template size_t attention_backward_workspace(const AttentionInput<T>&);                                     \
  template void attention(const AttentionInput<T>&, Heads<T>, Heads<Device<float>>, std::span<std::byte>);    \
  template void attention_backward(const AttentionInput<T>&, Heads<const T>, Heads<const Device<float>>,      \
                                   Heads<const T>, const AttentionGradients<T>&, std::span<std::byte>);       \
  template void attention_weights(const AttentionInput<T>&, Heads<const Device<float>>, const AttentionRows&, \
                                  Device<float>*, int64_t);                                                   \
  template void cached_attention(const CachedAttention<T>&, Matrix<T>, Arena&);
QKV_FOR_DEVICE_ELEMENTS(QKV_INSTANTIATE)
#undef QKV_INSTANTIATE

}  // namespace qkv
