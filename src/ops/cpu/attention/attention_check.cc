#include "ops/cpu/attention/attention_check.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();  // of tokens, and of sequences × heads
constexpr int64_t kMaxHeads = int64_t{1} << 24;
constexpr int64_t kMaxReach = int64_t{1} << 24;  // of a distance bias
constexpr int64_t kMaxWindow = int64_t{1} << 62;
constexpr int64_t kMaxStride = int64_t{1} << 44;
constexpr double kMaxSums = 0x1p44;  // partial sums of the gradient of a distance bias

template <class Real>
void check_numbers(const AttentionOptions<Real>& in) {
  if (!std::isfinite(in.scale)) fail("attention: scale must be finite (is {})", in.scale);
  if (!(in.softcap >= 0 && std::isfinite(in.softcap)))
    fail("attention: softcap must be finite and at least 0 (is {})", in.softcap);
  if (!(in.dropout.p >= 0 && in.dropout.p < 1))
    fail("attention: dropout.p must be at least 0 and below 1 (is {})", in.dropout.p);
  for (const int64_t keys : {in.window.left, in.window.right})
    if (keys < -1 || keys > kMaxWindow)
      fail("attention: window.left and window.right must be from -1 to 2^62 (are {} and {})", in.window.left,
           in.window.right);
}

void check_range(const char* side, int64_t s, int64_t begin, int64_t count) {
  if (begin < 0 || count < 0)
    fail("attention: {} of sequence {} must be a range from 0 on (are {} to {})", side, s, begin, begin + count);
}

void check_sequences(const Sequences& x, int64_t heads) {
  if (x.count < 0 || x.count > kMaxCount / heads)
    fail("attention: sequences.count must be from 0 to {} with {} heads (is {})", kMaxCount / heads, heads, x.count);
  for (const int64_t tokens : {x.T, x.S})
    if (tokens < 0 || tokens > kMaxCount)
      fail("attention: sequences.T and S must be from 0 to {} (are {} and {})", kMaxCount, x.T, x.S);
  if (!x.q_begin && !x.q_end && !x.k_begin && !x.k_end) return;
  for (int64_t s = 0; s < x.count; s++) {
    const Span at = span(x, s);
    check_range("queries", s, at.q0, at.T);
    check_range("keys", s, at.k0, at.S);
  }
}

// The tokens of one side: the end of the last one, and whether there are any.
struct Side {
  int64_t end = 0;
  bool any = false;
};

template <class RangeOf>
Side side_of(const Sequences& x, RangeOf&& range_of) {
  Side side;
  for (int64_t s = 0; s < x.count; s++) {
    const TokenRange range = range_of(span(x, s));
    if (range.empty()) continue;
    side.any = true;
    side.end = std::max(side.end, range.end);
  }
  return side;
}

TokenRange queries_of(const Span& at) { return {at.q0, at.q0 + at.T}; }
TokenRange keys_of(const Span& at) { return {at.k0, at.k0 + at.S}; }

template <class RangeOf>
void check_disjoint(const char* side, const Sequences& x, RangeOf&& range_of) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  bool in_order = true;
  for (int64_t s = 0, end = 0; s < x.count && in_order; s++) {
    const TokenRange range = range_of(span(x, s));
    if (range.empty()) continue;
    in_order = range.begin >= end;
    end = range.end;
  }
  if (in_order) return;
  for (int64_t s = 0; s < x.count; s++)
    if (const TokenRange range = range_of(span(x, s)); !range.empty()) ranges.emplace_back(range.begin, range.end);
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); i++)
    if (ranges[i].first < ranges[i - 1].second)
      fail("attention: {} of sequences must not overlap ({} to {} and {} to {} do)", side, ranges[i - 1].first,
           ranges[i - 1].second, ranges[i].first, ranges[i].second);
}

struct Dimension {
  int64_t stride, size;
};

// Whether two elements of an array of `width` adjacent elements may have the same place. Sufficient, not necessary:
// a dimension must be outside of all with smaller strides.
template <size_t N>
bool may_overlap(std::array<Dimension, N> dimensions, int64_t width) {
  std::ranges::sort(dimensions, {}, [](const Dimension& d) { return std::abs(d.stride); });
  double extent = static_cast<double>(width);
  for (const auto& [stride, size] : dimensions) {
    if (size <= 1) continue;
    const double step = std::abs(static_cast<double>(stride));
    if (step < extent) return true;
    extent += step * static_cast<double>(size - 1);
  }
  return false;
}

template <class T>
void check_array(const char* name, const Heads<T>& array, bool any) {
  if (any && !array.data) fail("attention: {} must not be null", name);
  for (const int64_t stride : {array.token_stride, array.head_stride, array.sequence_stride})
    if (stride < -kMaxStride || stride > kMaxStride)
      fail("attention: strides of {} must be within 2^44 (one is {})", name, stride);
}

// A result: [tokens, heads, width].
template <class T, class RangeOf>
void check_result(const char* name, const Heads<T>& array, const Sequences& x, RangeOf&& range_of, int64_t heads,
                  int64_t width) {
  const Side side = side_of(x, range_of);
  check_array(name, array, side.any);
  if (!side.any) return;
  const bool shares_tokens = array.sequence_stride == 0;
  if (shares_tokens) check_disjoint(name, x, range_of);
  const std::array<Dimension, 3> dimensions = {Dimension{array.token_stride, side.end},
                                               {array.head_stride, heads},
                                               {array.sequence_stride, shares_tokens ? 1 : x.count}};
  if (may_overlap(dimensions, width))
    fail("attention: elements of {} overlap (strides {} of tokens, {} of heads and {} of sequences, width {})", name,
         array.token_stride, array.head_stride, array.sequence_stride, width);
}

template <class Real>
void check_mask_gradient(const AttentionMask<Real>& mask, const AttentionOptions<Real>& in) {
  if (!mask.data) return;
  const Longest longest(in.sequences);
  std::array<Dimension, 4> dimensions = {Dimension{mask.sequence_stride, in.sequences.count},
                                         {mask.head_stride, in.heads},
                                         {mask.row_stride, longest.queries},
                                         {mask.key_stride, longest.keys}};
  for (Dimension& d : dimensions) {
    if (d.stride < -kMaxStride || d.stride > kMaxStride)
      fail("attention: strides of dmask must be within 2^44 (one is {})", d.stride);
    if (d.stride == 0) d.size = 1;  // the sum over all that share the entry
  }
  if (may_overlap(dimensions, 1)) fail("attention: elements of dmask overlap");
}

template <class T>
void check_inputs(const AttentionInput<T>& in) {
  check_attention<Arithmetic<T>>(in);
  const Sequences& x = in.sequences;
  const Side queries = side_of(x, queries_of), keys = side_of(x, keys_of);
  check_array("q", in.q, queries.any);
  check_array("k", in.k, keys.any);
  check_array("v", in.v, keys.any);
}

}  // namespace

template <class Real>
void check_attention(const AttentionOptions<Real>& in) {
  const int64_t K = in.key_value_heads();
  if (in.heads < 1 || in.heads > kMaxHeads || K < 1 || in.heads % K)
    fail("attention: kv_heads must divide heads, both from 1 to {} (heads is {}, kv_heads is {})", kMaxHeads, in.heads,
         K);
  for (const int64_t width : {in.key_width, in.value_width})
    if (width < 1 || width > kMaxHeadWidth)
      fail("attention: key_width and value_width must be between 1 and {} (are {} and {})", kMaxHeadWidth, in.key_width,
           in.value_width);
  const int64_t reach = in.distance_bias.reach;
  if (reach < 0 || reach > kMaxReach)
    fail("attention: distance_bias.reach must be between 0 and {} (is {})", kMaxReach, reach);
  check_numbers(in);
  check_sequences(in.sequences, in.heads);
  if (!in.distance_bias.data) return;
  const Longest longest(in.sequences);
  const double sums = static_cast<double>(in.sequences.count * in.heads) * static_cast<double>(longest.keys + 1) *
                      static_cast<double>(in.distance_bias.width());
  if (sums > kMaxSums) fail("attention: {} sums for the gradient of distance_bias are more than 2^44", sums);
}

template <class T>
void check_forward(const AttentionInput<T>& in, Heads<T> out, Heads<Arithmetic<T>> lse) {
  check_inputs(in);
  check_result("out", out, in.sequences, queries_of, in.heads, in.value_width);
  if (lse.data) check_result("lse", lse, in.sequences, queries_of, in.heads, 1);
}

template <class T>
void check_backward(const AttentionInput<T>& in, Heads<const T> out, Heads<const Arithmetic<T>> lse,
                    Heads<const T> dout, const AttentionGradients<T>& gradients) {
  check_inputs(in);
  const bool any = side_of(in.sequences, queries_of).any;
  check_array("out", out, any);
  check_array("lse", lse, any);
  check_array("dout", dout, any);
  const int64_t K = in.key_value_heads();
  check_result("dq", gradients.dq, in.sequences, queries_of, in.heads, in.key_width);
  check_result("dk", gradients.dk, in.sequences, keys_of, K, in.key_width);
  check_result("dv", gradients.dv, in.sequences, keys_of, K, in.value_width);
  check_mask_gradient<Arithmetic<T>>(gradients.dmask, in);
}

template <class T>
void check_weights(const AttentionInput<T>& in, Heads<const Arithmetic<T>> lse, const AttentionRows& rows,
                   const Arithmetic<T>* A, int64_t stride) {
  check_inputs(in);
  if (rows.sequence < 0 || rows.sequence >= in.sequences.count || rows.head < 0 || rows.head >= in.heads)
    fail("attention: rows must be of a sequence from 0 to {} and a head from 0 to {} (are {} and {})",
         in.sequences.count - 1, in.heads - 1, rows.sequence, rows.head);
  const Span at = span(in.sequences, rows.sequence);
  if (rows.begin < 0 || rows.begin > rows.end || rows.end > at.T)
    fail("attention: rows must be from 0 to {}, the queries of the sequence (are {} to {})", at.T, rows.begin,
         rows.end);
  const bool any = rows.begin < rows.end && at.S > 0;
  check_array("lse", lse, any);
  if (any && !A) fail("attention: A must not be null");
  if (stride != 0 && (stride < at.S || stride > kMaxStride))
    fail("attention: the stride of A must be 0 or at least {}, the number of keys (is {})", at.S, stride);
}

template void check_attention(const AttentionOptions<float>&);
template void check_attention(const AttentionOptions<double>&);
#define QKV_CHECKS(T)                                                                                                \
  template void check_forward(const AttentionInput<T>&, Heads<T>, Heads<Arithmetic<T>>);                             \
  template void check_backward(const AttentionInput<T>&, Heads<const T>, Heads<const Arithmetic<T>>, Heads<const T>, \
                               const AttentionGradients<T>&);                                                        \
  template void check_weights(const AttentionInput<T>&, Heads<const Arithmetic<T>>, const AttentionRows&,            \
                              const Arithmetic<T>*, int64_t)
QKV_CHECKS(float);
QKV_CHECKS(bfloat16);
QKV_CHECKS(double);
#undef QKV_CHECKS

}  // namespace qkv
