// Backward of attention in float32, one sequence and head at a time: for each panel of keys the weights are recomputed
// from the log-sum-exp, dS is formed beside them, and both go into dQ, dK and dV by products of register tiles.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_backward.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <vector>

#include "core/isa.h"
#include "core/threads.h"
#include "ops/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// For row r of a tile, in place: p = 2^(score + bias − lse), lse in units of log 2; dS = p (dropout dA − D); then p
// times dropout.
HWY_INLINE void differentiate_row(const TileView& view, int64_t r, float lse, float D, float* HWY_RESTRICT weights,
                                  float* HWY_RESTRICT dscores) {
  const Floats d;
  for (int64_t c = 0; c < view.vectors * lanes(); c += lanes()) {
    Vector p = hn::Load(d, weights + c), dA = hn::Load(d, dscores + c);
    if (view.bias) p = hn::Add(p, hn::Load(d, view.bias + r * kKeys + c));
    p = exp2(hn::Sub(p, set(lse)));
    if (view.dropout) {
      const Vector factor = hn::Load(d, view.dropout + r * kKeys + c);
      dA = hn::Mul(dA, factor);
      hn::Store(hn::Mul(p, factor), d, weights + c);
    } else {
      hn::Store(p, d, weights + c);
    }
    hn::Store(hn::Mul(p, hn::Sub(dA, set(D))), d, dscores + c);
  }
}

HWY_INLINE float dot(const float* a, const float* b, int64_t n) {
  Vector sum = zero();
  for_columns(n, [&](int64_t c, auto io) HWY_ATTR { sum = hn::MulAdd(io.load(a + c), io.load(b + c), sum); });
  return sum_of_lanes(sum);
}

// Assigns scale · x to n rows of a head.
HWY_INLINE void store_rows(Matrix<const float> x, float scale, float* to, int64_t stride) {
  for (int64_t i = 0; i < x.rows; i++)
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
      io.store(hn::Mul(set(scale), hn::Load(Floats(), x.row(i) + c)), to + i * stride + c);
    });
}

HWY_INLINE Matrix<float> zeros(float* data, int64_t rows, int64_t cols) {
  std::fill_n(data, rows * padded(cols), 0.0f);
  return {data, rows, cols, padded(cols)};
}

// Everything that one panel of keys needs, and the gradients that gather over its queries.
struct Panel {
  int64_t j, keys;
  Matrix<const float> q, dout, k;
  Matrix<float> dq, dk, dv;
};

// Weights and dS of queries [begin, begin + rows), and their part of dQ, dK, dV.
HWY_INLINE void differentiate_block(const Pair& pair, const Panel& panel, int64_t begin, int64_t rows,
                                    DropoutFactors* factors, const BackwardScratch& scratch) {
  const int64_t all_vectors = (panel.keys + lanes() - 1) / lanes();
  for_tiles(rows, [&](int64_t first, int64_t count) HWY_ATTR {
    const int64_t i = begin + first;
    const TileView view(pair, i, count, panel.j, panel.keys, factors, scratch);
    float *weights = scratch.weights + first * kKeys, *dscores = scratch.dscores + first * kKeys;
    multiply(panel.q.row_range(i, i + count), scratch.keys, view.vectors, weights);
    multiply(panel.dout.row_range(i, i + count), scratch.values, view.vectors, dscores);
    for (int64_t r = 0; r < count; r++)
      differentiate_row(view, r, scratch.lse[i + r], scratch.D[i + r], weights + r * kKeys, dscores + r * kKeys);
    for (int64_t r = 0; r < count; r++)
      for (int64_t c = view.vectors; c < all_vectors; c++) {
        hn::Store(zero(), Floats(), weights + r * kKeys + c * lanes());
        hn::Store(zero(), Floats(), dscores + r * kKeys + c * lanes());
      }
    add_product<false>(count, dscores, panel.k, view.keys, panel.dq.row_range(i, i + count));
  });
  for_tiles(panel.keys, [&](int64_t key, int64_t count) HWY_ATTR {
    int64_t first = 0;  // queries before it do not see these keys
    while (first < rows && pair.visible(begin + first) <= panel.j + key) first++;
    const int64_t a = first * kKeys + key;
    add_product<true>(count, scratch.weights + a, panel.dout.row_range(begin + first, begin + rows), rows - first,
                      panel.dv.row_range(key, key + count));
    add_product<true>(count, scratch.dscores + a, panel.q.row_range(begin + first, begin + rows), rows - first,
                      panel.dk.row_range(key, key + count));
  });
}

HWY_NOINLINE void differentiate_pair(const BackwardCall& call, const Pair& pair, DropoutFactors* factors,
                                     const BackwardScratch& scratch) {
  const AttentionInput<float>& in = call.in;
  const reference::Span& at = pair.at;
  const int64_t h = pair.h;
  prefetch(call.dq, at.q0, h, at.T, in.key_width);
  prefetch(call.dk, at.k0, h, at.S, in.key_width);
  prefetch(call.dv, at.k0, h, at.S, in.value_width);
  if (h + 1 < in.heads) {
    prefetch(call.dout, at.q0, h + 1, at.T, in.value_width);
    prefetch(call.out, at.q0, h + 1, at.T, in.value_width);
    prefetch_keys_and_queries(pair);
  }
  Panel panel;
  panel.q = whole_vectors(pair.q(), at.S, scratch.q);
  panel.dout =
      whole_vectors({call.dout.at(at.q0, h), at.T, in.value_width, call.dout.token_stride}, at.S, scratch.dout);
  panel.dq = zeros(scratch.dq, at.T, in.key_width);
  for (int64_t i = 0; i < at.T; i++) {
    const int64_t token = at.q0 + i;
    const float row_lse = call.lse[token * in.heads + h];
    scratch.lse[i] = row_lse == -HUGE_VALF ? 1e30f : row_lse * kLog2e;
    scratch.D[i] = dot(call.dout.at(token, h), call.out.at(token, h), in.value_width);
  }
  for (int64_t j = 0; j < at.S; j += kKeys) {
    panel.j = j;
    panel.keys = HWY_MIN(kKeys, at.S - j);
    const Matrix<const float> k = pair.k().row_range(j, j + panel.keys), v = pair.v().row_range(j, j + panel.keys);
    pack_transposed(k, pair.scale2(), scratch.keys);
    pack_transposed(v, 1.0f, scratch.values);
    panel.k = whole_vectors(k, at.T, scratch.key_rows);
    panel.dk = zeros(scratch.dk, panel.keys, in.key_width);
    panel.dv = zeros(scratch.dv, panel.keys, in.value_width);
    for (int64_t i = reference::first_query(at, in.causal, j); i < at.T; i += kBackwardRows)
      differentiate_block(pair, panel, i, HWY_MIN(kBackwardRows, at.T - i), factors, scratch);
    store_rows(panel.dk, in.scale, call.dk.at(at.k0 + j, h), call.dk.token_stride);
    store_rows(panel.dv, 1.0f, call.dv.at(at.k0 + j, h), call.dv.token_stride);
  }
  store_rows(panel.dq, in.scale, call.dq.at(at.q0, h), call.dq.token_stride);
}

HWY_NOINLINE void AttentionBackwardPair(const BackwardCall& call, int64_t s, int64_t h,
                                        const BackwardScratch& scratch) {
  const Pair pair(call.in, s, h);
  if (!call.in.dropout.active()) return differentiate_pair(call, pair, nullptr, scratch);
  DropoutFactors factors(pair.dropout());
  differentiate_pair(call, pair, &factors, scratch);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AttentionBackwardPair);

template <>
void attention_backward<float>(const AttentionInput<float>& in, Heads<const float> out, const float* lse,
                               Heads<const float> dout, Heads<float> dq, Heads<float> dk, Heads<float> dv,
                               Arena& arena) {
  reference::check_attention(in);
  const auto kernel = QKV_DISPATCH(AttentionBackwardPair);
  const BackwardCall call{in, out, lse, dout, dq, dk, dv};
  const Longest longest(in.sequences);
  const Arena::Scope scope(arena);
  std::vector<BackwardScratch> scratch;
  for (int t = 0; t < threads(); t++) scratch.emplace_back(in, longest, arena);
  parallel_blocks(in.sequences.count * in.heads, longest.queries <= kKeys ? 4 : 1, [&](int64_t first, int64_t last) {
    for (int64_t pair = first; pair < last; pair++)
      kernel(call, pair / in.heads, pair % in.heads, scratch[omp_get_thread_num()]);
  });
}

}  // namespace qkv
#endif
