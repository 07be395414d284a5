#include "ops/cached_attention.h"

#include <algorithm>
#include <cmath>

#include "core/isa.h"
#include "core/profile.h"
#include "core/threads.h"
#include "ops/cached_attention_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cached_attention.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/attention_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

constexpr int kHeads = 4;  // that go through the rows together

// The rows of one query in some columns of the cache.
struct CachedRows {
  const float* data;
  int64_t stride, first, count;
  const int32_t* places;  // or null

  HWY_INLINE const float* row(int64_t j) const {
    return data + (places ? int64_t{places[first + j]} : first + j) * stride;
  }
};

// a[j, h] = q_h · k_jh
HWY_INLINE void cached_scores(const float* q, const CachedRows& k, int64_t heads, int64_t width, float* a) {
  const int64_t at[kHeads] = {0, HWY_MIN(1, heads - 1) * width, HWY_MIN(2, heads - 1) * width, (heads - 1) * width};
  for (int64_t j = 0; j < k.count; j++, a += kHeads) {
    const float* row = k.row(j);
    Vector a0 = zero(), a1 = zero(), a2 = zero(), a3 = zero();
    for_columns(width, [&](int64_t c, auto io) HWY_ATTR {
      a0 = hn::MulAdd(io.load(q + at[0] + c), io.load(row + at[0] + c), a0);
      a1 = hn::MulAdd(io.load(q + at[1] + c), io.load(row + at[1] + c), a1);
      a2 = hn::MulAdd(io.load(q + at[2] + c), io.load(row + at[2] + c), a2);
      a3 = hn::MulAdd(io.load(q + at[3] + c), io.load(row + at[3] + c), a3);
    });
    four_sums(a0, a1, a2, a3, a);
  }
}

// Calls f(h, …) for every lane of a vector whose lanes belong to heads 0 1 2 3 0 1 2 3 …
template <class F>
HWY_INLINE void each_lane(Vector v, const F& f) {
  alignas(64) float lane[16];
  hn::Store(v, Floats(), lane);
  for (int64_t l = 0; l < lanes(); l++) f(l % kHeads, lane[l]);
}

// a[j, h] ← e^{scale (a[j, h] − max_j a[j, h])}; sums[h]: their sums over j.
HWY_INLINE void cached_exponentials(int64_t keys, float scale, float* a, float* sums) {
  float max[kHeads];
  std::fill_n(max, kHeads, hwy::LowestValue<float>());
  std::fill_n(sums, kHeads, 0.0f);
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < keys * kHeads; i++) max[i % kHeads] = HWY_MAX(max[i % kHeads], a[i]);
  for (int64_t i = 0; i < keys * kHeads; i++) {
    a[i] = hn::GetLane(exp2(set((a[i] - max[i % kHeads]) * scale)));
    sums[i % kHeads] += a[i];
  }
#else
  Vector most = set(hwy::LowestValue<float>()), sum = zero();
  for_columns(keys * kHeads, [&](int64_t i, auto io) HWY_ATTR { most = hn::Max(io.only(io.load(a + i), most), most); });
  each_lane(most, [&](int64_t h, float x) { max[h] = HWY_MAX(max[h], x); });
  const Vector shift = hn::LoadDup128(Floats(), max);
  for_columns(keys * kHeads, [&](int64_t i, auto io) HWY_ATTR {
    const Vector p = io.only(exp2(hn::Mul(hn::Sub(io.load(a + i), shift), set(scale))), zero());
    sum = hn::Add(sum, p);
    io.store(p, a + i);
  });
  each_lane(sum, [&](int64_t h, float x) { sums[h] += x; });
#endif
}

// y_h = Σ_j a[j, h] v_jh / sums[h] for C vectors of columns of every head.
template <int C, class Io>
HWY_INLINE void cached_mix(const float* a, const CachedRows& v, int64_t heads, int64_t width, int64_t column,
                           const float* sums, Io io, float* y) {
  const int64_t at[kHeads] = {0, HWY_MIN(1, heads - 1) * width, HWY_MIN(2, heads - 1) * width, (heads - 1) * width};
  Vector sum[kHeads][C];
  clear_tile(sum);
  for (int64_t j = 0; j < v.count; j++) {
    const float* row = v.row(j) + column;
    HWY_UNROLL(8)
    for (int h = 0; h < kHeads; h++) {
      const Vector p = set(a[j * kHeads + h]);
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[h][c] = hn::MulAdd(p, io.load(row + at[h] + c * lanes()), sum[h][c]);
    }
  }
  HWY_UNROLL(8)
  for (int h = 0; h < kHeads; h++) {
    if (h >= heads) break;
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) io.store(hn::Mul(sum[h][c], set(1 / sums[h])), y + h * width + column + c * lanes());
  }
}

// Heads [h, h + heads) of one query, at most kHeads of them; a: [keys, kHeads] and a vector more.
void CachedAttentionHeads(const CachedAttention<float>& in, int64_t n, int64_t h, int64_t heads, float* a, float* y) {
  const int64_t dk = in.key_width, dv = in.value_width;
  CachedRows k{in.cache.data + h * dk, in.cache.stride, in.keys.begin[n], in.keys.end[n] - in.keys.begin[n],
               in.keys.rows};
  if (k.count == 0) return void(std::fill_n(y, heads * dv, 0.0f));
  CachedRows v = k;
  v.data = in.cache.data + in.heads * dk + h * dv;
  float sums[kHeads];
  cached_scores(in.q.row(n) + h * dk, k, heads, dk, a);
  cached_exponentials(k.count, kLog2e / std::sqrt(static_cast<float>(dk)), a, sums);
  int64_t c = 0;
  for (; c + kTileVectors * lanes() <= dv; c += kTileVectors * lanes())
    cached_mix<kTileVectors>(a, v, heads, dv, c, sums, WholeVector(), y);
  for (; c + lanes() <= dv; c += lanes()) cached_mix<1>(a, v, heads, dv, c, sums, WholeVector(), y);
  if (c < dv) cached_mix<1>(a, v, heads, dv, c, sums, PartOfVector(dv - c), y);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(CachedAttentionHeads);

template <>
void cached_attention(const CachedAttention<float>& in, Matrix<float> y, Arena& scratch) {
  int64_t longest = 0, all = 0;
  for (int64_t n = 0; n < y.rows; n++) {
    const int64_t keys = in.keys.end[n] - in.keys.begin[n];
    longest = std::max(longest, keys);
    all += keys;
  }
  const double products = static_cast<double>(all * in.heads * (in.key_width + in.value_width));
  const ProfiledOp profiled("cached attention", {y.rows, in.heads, in.key_width}, {2 * products, 4 * products});
  const auto kernel = QKV_DISPATCH(CachedAttentionHeads);
  const Arena::Scope scope(scratch);
  constexpr int64_t kHeads = 4;  // of one call
  const int64_t stride = kHeads * longest + 16, groups = (in.heads + kHeads - 1) / kHeads;
  float* weights = scratch.take<float>(threads() * stride);
  const int64_t work = std::max<int64_t>(1, kHeads * longest * (in.key_width + in.value_width));  // of one call
  parallel_blocks(y.rows * groups, std::max<int64_t>(1, 32768 / work), [&](int64_t begin, int64_t end) {
    float* a = weights + omp_get_thread_num() * stride;
    for (int64_t i = begin; i < end; i++) {
      const int64_t n = i / groups, h = i % groups * kHeads;
      kernel(in, n, h, std::min(kHeads, in.heads - h), a, y.row(n) + h * in.value_width);
    }
  });
}

template <>
void cached_attention(const CachedAttention<double>& in, Matrix<double> y, Arena&) {
  reference::cached_attention(in, y);
}

}  // namespace qkv
#endif
