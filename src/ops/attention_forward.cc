// O = softmax(Q Kᵀ · scale + M) V in float32. Panels of Kᵀ and V meet tiles of queries in registers. Scores are kept in
// units of log 2 and their exponentials are taken as they are, without the row's maximum: a sum between 2^−64 and 2^64
// is safe in float32, as one score cannot exceed it, nor what it loses below 2^−126 matter. A row whose sum lies
// outside is done again through its maximum, by the kernel that serves short queries.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_forward.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cmath>
#include <vector>

#include "core/isa.h"
#include "core/threads.h"
#include "ops/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Packing K pays from this many queries on.
constexpr int64_t kFewQueries = 4;

// dots[u] = q · k[u], u < 4.
HWY_INLINE void four_dots(const float* q, const float* const (&k)[4], int64_t depth, float* dots) {
  Vector a0 = zero(), a1 = zero(), a2 = zero(), a3 = zero();
  for_columns(depth, [&](int64_t c, auto io) HWY_ATTR {
    const Vector x = io.load(q + c);
    a0 = hn::MulAdd(x, io.load(k[0] + c), a0);
    a1 = hn::MulAdd(x, io.load(k[1] + c), a1);
    a2 = hn::MulAdd(x, io.load(k[2] + c), a2);
    a3 = hn::MulAdd(x, io.load(k[3] + c), a3);
  });
#if HWY_TARGET == HWY_SCALAR
  dots[0] = a0.raw, dots[1] = a1.raw, dots[2] = a2.raw, dots[3] = a3.raw;
#else
  transpose_blocks(a0, a1, a2, a3);
  const Vector sum = hn::Add(hn::Add(a0, a2), hn::Add(a1, a3));  // of every block
  const hn::CappedTag<float, 4> d4;
#if HWY_TARGET == HWY_AVX3
  const hn::CappedTag<float, 8> d8;
  const auto half = hn::Add(hn::LowerHalf(d8, sum), hn::UpperHalf(d8, sum));
  hn::Store(hn::Add(hn::LowerHalf(half), hn::UpperHalf(d4, half)), d4, dots);
#elif HWY_TARGET == HWY_AVX2
  hn::Store(hn::Add(hn::LowerHalf(sum), hn::UpperHalf(d4, sum)), d4, dots);
#else
  hn::Store(sum, d4, dots);
#endif
#endif
}

// out_c = factor · Σ_j a_j v_jc for C vectors of columns; eight sums are in flight.
template <int C, class Io>
HWY_INLINE void mix_columns(const float* a, Matrix<const float> v, float factor, float* out, Io io) {
  constexpr int64_t kAhead = 8 / C;
  Vector sum[kAhead][C];
  HWY_UNROLL(8)
  for (int64_t u = 0; u < kAhead; u++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) sum[u][c] = zero();
  }
  int64_t j = 0;
  for (; j + kAhead <= v.rows; j += kAhead) {
    HWY_UNROLL(8)
    for (int64_t u = 0; u < kAhead; u++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[u][c] = hn::MulAdd(set(a[j + u]), io.load(v.row(j + u) + c * lanes()), sum[u][c]);
    }
  }
  for (; j < v.rows; j++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) sum[0][c] = hn::MulAdd(set(a[j]), io.load(v.row(j) + c * lanes()), sum[0][c]);
  }
  HWY_UNROLL(8)
  for (int c = 0; c < C; c++) {
    Vector total = sum[0][c];
    HWY_UNROLL(8)
    for (int64_t u = 1; u < kAhead; u++) total = hn::Add(total, sum[u][c]);
    io.store(hn::Mul(set(factor), total), out + c * lanes());
  }
}

HWY_INLINE void mix(const float* a, Matrix<const float> v, float factor, float* out) {
  int64_t c = 0;
  for (; c + 4 * lanes() <= v.cols; c += 4 * lanes())
    mix_columns<4>(a, v.col_range(c, v.cols), factor, out + c, WholeVector());
  for (; c + 2 * lanes() <= v.cols; c += 2 * lanes())
    mix_columns<2>(a, v.col_range(c, v.cols), factor, out + c, WholeVector());
  for_columns(v.cols - c, [&](int64_t e, auto io)
                              HWY_ATTR { mix_columns<1>(a, v.col_range(c + e, v.cols), factor, out + c + e, io); });
}

// One query, K and V read where they lie; a: [padded(S)] in scratch memory. Returns the log-sum-exp.
HWY_NOINLINE float attend_row(const Pair& pair, int64_t i, DropoutFactors* factors, float* a, float* out) {
  const Floats d;
  const Matrix<const float> k = pair.k();
  const float *q = pair.q().row(i), *mask = pair.mask(i, 0);
  const int64_t n = pair.visible(i);
  for (int64_t j = 0; j < n; j += 4) {
    const float* const keys[4] = {k.row(j), k.row(HWY_MIN(j + 1, n - 1)), k.row(HWY_MIN(j + 2, n - 1)),
                                  k.row(HWY_MIN(j + 3, n - 1))};
    four_dots(q, keys, k.cols, a + j);
  }
  for_columns(n, [&](int64_t c, auto io) HWY_ATTR {
    Vector s = hn::Mul(hn::Load(d, a + c), set(pair.scale2()));
    if (mask) s = hn::MulAdd(io.load(mask + c), set(kLog2e), s);
    hn::Store(s, d, a + c);
  });
  for (int64_t j = n; j % lanes() != 0; j++) a[j] = -HUGE_VALF;
  Vector most = set(-HUGE_VALF);
  for (int64_t j = 0; j < n; j += lanes()) most = hn::Max(hn::Load(d, a + j), most);
  const float largest = max_of_lanes(most);
  if (largest == -HUGE_VALF) {
    std::fill_n(out, pair.in.value_width, 0.0f);
    return largest;
  }
  Vector sums = zero();
  const auto weigh = [&](int64_t c, auto, Vector factor) HWY_ATTR {
    const Vector p = exp2(hn::Sub(hn::Load(d, a + c), set(largest)));
    sums = hn::Add(sums, p);
    hn::Store(hn::Mul(p, factor), d, a + c);
  };
  if (factors) {
    for_columns_dropped(pair.at.q0 + i, n, *factors, weigh);
  } else {
    for_columns(n, [&](int64_t c, auto io) HWY_ATTR { weigh(c, io, set(1.0f)); });
  }
  const float sum = sum_of_lanes(sums);
  mix(a, pair.v().row_range(0, n), 1.0f / sum, out);
  return largest / kLog2e + std::log(sum);
}

// p = 2^(score + bias) in place, times dropout, for row r of a tile; adds p without dropout to sum.
HWY_INLINE void weigh_row(const TileView& view, int64_t r, float* HWY_RESTRICT scores, float* HWY_RESTRICT sum) {
  const Floats d;
  Vector total = hn::Load(d, sum);
  for (int64_t c = 0; c < view.vectors * lanes(); c += lanes()) {
    Vector p = hn::Load(d, scores + c);
    if (view.bias) p = hn::Add(p, hn::Load(d, view.bias + r * kKeys + c));
    p = exp2(p);
    total = hn::Add(total, p);
    if (view.dropout) p = hn::Mul(p, hn::Load(d, view.dropout + r * kKeys + c));
    hn::Store(p, d, scores + c);
  }
  hn::Store(total, d, sum);
}

// Adds the keys of one panel, from j on, to queries [begin, begin + rows).
HWY_INLINE void attend_panel(const Pair& pair, int64_t begin, int64_t rows, int64_t j, Matrix<const float> q,
                             DropoutFactors* factors, const ForwardScratch& scratch) {
  const int64_t keys = HWY_MIN(kKeys, pair.at.S - j);
  pack_transposed(pair.k().row_range(j, j + keys), pair.scale2(), scratch.keys);
  const Matrix<const float> v = whole_vectors(pair.v().row_range(j, j + keys), rows, scratch.values);
  const int64_t out_stride = padded(v.cols);
  for_tiles(rows, [&](int64_t first, int64_t count) HWY_ATTR {
    const TileView view(pair, begin + first, count, j, keys, factors, scratch);
    if (view.keys <= 0) return;
    multiply(q.row_range(first, first + count), scratch.keys, view.vectors, scratch.weights);
    for (int64_t r = 0; r < count; r++)
      weigh_row(view, r, scratch.weights + r * kKeys, scratch.sums + (first + r) * kLanes);
    add_product<false>(count, scratch.weights, v, view.keys,
                       Matrix<float>(scratch.out + first * out_stride, count, v.cols, out_stride));
  });
}

HWY_NOINLINE void attend_block(const ForwardCall& call, const Pair& pair, int64_t begin, int64_t end,
                               DropoutFactors* factors, const ForwardScratch& scratch) {
  const AttentionInput<float>& in = call.in;
  const int64_t rows = end - begin, stride = padded(in.value_width);
  const bool tiled = rows > kFewQueries;
  if (tiled) {
    prefetch(call.out, pair.at.q0 + begin, pair.h, rows, in.value_width);
    if (pair.h + 1 < in.heads) prefetch_keys_and_queries(pair);
    std::fill_n(scratch.sums, rows * kLanes, 0.0f);
    std::fill_n(scratch.out, rows * stride, 0.0f);
    const Matrix<const float> q = whole_vectors(pair.q().row_range(begin, end), pair.at.S, scratch.q);
    for (int64_t j = 0; j < pair.visible(end - 1); j += kKeys) attend_panel(pair, begin, rows, j, q, factors, scratch);
  }
  for (int64_t r = 0; r < rows; r++) {
    const int64_t token = pair.at.q0 + begin + r;
    float* to = call.out.at(token, pair.h);
    const float sum = tiled ? sum_of_lanes(hn::Load(Floats(), scratch.sums + r * kLanes)) : 0.0f;
    float row_lse;
    if (sum >= 0x1p-64f && sum <= 0x1p64f) {
      row_lse = call.lse ? std::log(sum) : 0.0f;
      const Vector factor = set(1.0f / sum);
      for_columns(in.value_width, [&](int64_t c, auto io) HWY_ATTR {
        io.store(hn::Mul(factor, hn::Load(Floats(), scratch.out + r * stride + c)), to + c);
      });
    } else {
      row_lse = attend_row(pair, begin + r, factors, scratch.row, to);
    }
    if (call.lse) call.lse[token * in.heads + pair.h] = row_lse;
  }
}

// Queries [begin, end) of sequence s and head h, at most kForwardRows.
HWY_NOINLINE void AttentionBlock(const ForwardCall& call, int64_t s, int64_t h, int64_t begin, int64_t end,
                                 const ForwardScratch& scratch) {
  const Pair pair(call.in, s, h);
  if (!call.in.dropout.active()) return attend_block(call, pair, begin, end, nullptr, scratch);
  DropoutFactors factors(pair.dropout());
  attend_block(call, pair, begin, end, &factors, scratch);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AttentionBlock);

template <>
void attention<float>(const AttentionInput<float>& in, Heads<float> out, float* lse, Arena& arena) {
  reference::check_attention(in);
  const auto kernel = QKV_DISPATCH(AttentionBlock);
  const ForwardCall call{in, out, lse};
  const Longest longest(in.sequences);
  const Arena::Scope scope(arena);
  std::vector<ForwardScratch> scratch;
  for (int t = 0; t < threads(); t++) scratch.emplace_back(in, longest, arena);
  const int64_t blocks = (longest.queries + kForwardRows - 1) / kForwardRows;
  parallel_blocks(in.sequences.count * in.heads * blocks, blocks == 1 ? 4 : 1, [&](int64_t first, int64_t last) {
    for (int64_t item = first; item < last; item++) {
      const int64_t pair = item / blocks, s = pair / in.heads;
      const int64_t T = reference::span(in.sequences, s).T;
      const int64_t begin = (blocks - 1 - item % blocks) * kForwardRows;  // causal: the longest blocks first
      const int64_t end = std::min(T, begin + kForwardRows);
      if (begin < end) kernel(call, s, pair % in.heads, begin, end, scratch[omp_get_thread_num()]);
    }
  });
}

}  // namespace qkv
#endif
