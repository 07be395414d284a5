#include "ops/cached_attention.h"

#include <algorithm>
#include <cmath>

#include "core/profile.h"
#include "core/system/isa.h"
#include "core/system/threads.h"
#include "ops/cpu/attention/cached_pairs.h"
#include "ops/reference/cached_attention_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention/cached_attention.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/attention/attention_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// The cache rows of one query.
struct CachedRows {
  const float* data;
  int64_t stride, first, count;
  const int32_t* places;  // may be null

  HWY_INLINE const float* row(int64_t j) const {
    return data + (places ? int64_t{places[first + j]} : first + j) * stride;
  }
};

// Prefetches `count` floats. The key-value cache may exceed the processor's caches, and its rows are not contiguous.
HWY_INLINE void prefetch(const float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(x + i);
}

// a[j, l] = q_l · k_j for queries of one head. Prefetches nothing, because the next queries read the same rows.
HWY_INLINE void cached_scores_of_one_head(const CachedPairs& at, const CachedRows& keys, int64_t width, float* a) {
  for (int64_t j = 0; j < keys.count; j++, a += kPairs) {
    const float* row = keys.row(j) + at.k[0];
    Vector a0 = zero(), a1 = zero(), a2 = zero(), a3 = zero();
    for_columns(width, [&](int64_t c, auto io) HWY_ATTR {
      const Vector k = io.load(row + c);
      a0 = hn::MulAdd(io.load(at.q[0] + c), k, a0);
      a1 = hn::MulAdd(io.load(at.q[1] + c), k, a1);
      a2 = hn::MulAdd(io.load(at.q[2] + c), k, a2);
      a3 = hn::MulAdd(io.load(at.q[3] + c), k, a3);
    });
    four_sums(a0, a1, a2, a3, a);
  }
}

// a[j, l] = q_l · k_jl. Prefetches the keys of later rows, and the values, which are needed next.
HWY_INLINE void cached_scores(const CachedPairs& at, const CachedRows& keys, int64_t width, float* a) {
  constexpr int64_t kRowsAhead = 6;
  const int64_t columns = at.k[kPairs - 1] - at.k[0] + width;
  for (int64_t j = 0; j < keys.count; j++, a += kPairs) {
    const float* row = keys.row(j);
    prefetch(keys.row(HWY_MIN(j + kRowsAhead, keys.count - 1)) + at.k[0], columns);
    prefetch(row + at.v[0], columns);
    Vector a0 = zero(), a1 = zero(), a2 = zero(), a3 = zero();
    for_columns(width, [&](int64_t c, auto io) HWY_ATTR {
      a0 = hn::MulAdd(io.load(at.q[0] + c), io.load(row + at.k[0] + c), a0);
      a1 = hn::MulAdd(io.load(at.q[1] + c), io.load(row + at.k[1] + c), a1);
      a2 = hn::MulAdd(io.load(at.q[2] + c), io.load(row + at.k[2] + c), a2);
      a3 = hn::MulAdd(io.load(at.q[3] + c), io.load(row + at.k[3] + c), a3);
    });
    four_sums(a0, a1, a2, a3, a);
  }
}

// Calls f(l, x) for every lane of a vector whose lanes belong to l = 0 1 2 3 0 1 2 3 …
template <class F>
HWY_INLINE void each_lane(Vector v, const F& f) {
  alignas(64) float lane[16];
  hn::Store(v, Floats(), lane);
  for (int64_t l = 0; l < lanes(); l++) f(l % kPairs, lane[l]);
}

// Turns the products a[j, l] into scores: scaled, with softcap, ALiBi and distance bias.
HWY_NOINLINE void cached_scores_adjusted(const CachedAttention<float>& in, const CachedPairs& at, int64_t keys,
                                         float scale, float* a) {
  const Floats d;
  for (int64_t i = 0; i < keys * kPairs; i += lanes()) {
    Vector s = hn::Mul(hn::LoadU(d, a + i), set(scale));
    if (in.softcap > 0) s = hn::Mul(hn::Tanh(d, hn::Div(s, set(in.softcap))), set(in.softcap));
    if (in.alibi) {
      const Vector j = hn::Floor(hn::Mul(hn::Iota(d, static_cast<float>(i)), set(1.0f / kPairs)));
      const Vector slope = hn::LoadU(d, at.slope + i % kPairs), last = hn::LoadU(d, at.last + i % kPairs);
      s = hn::NegMulAdd(slope, hn::Sub(last, j), s);
    }
    hn::StoreU(s, d, a + i);
  }
  for (int l = 0; l < kPairs && in.distance_bias.data; l++)
    for (int64_t j = 0; j < at.keys[l]; j++)
      a[j * kPairs + l] += at.bias[l][HWY_MAX(j - (at.keys[l] - 1), -in.distance_bias.reach)];
}

// a[j, l] ← e^{scale (a[j, l] − max_j a[j, l])}; assigns their sums over j to sums[l].
HWY_INLINE void cached_exponentials(int64_t keys, float scale, float* a, float* sums) {
  float max[kPairs];
  std::fill_n(max, kPairs, hwy::LowestValue<float>());
  std::fill_n(sums, kPairs, 0.0f);
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < keys * kPairs; i++) max[i % kPairs] = HWY_MAX(max[i % kPairs], a[i]);
  for (int64_t i = 0; i < keys * kPairs; i++) {
    a[i] = hn::GetLane(exp2(set((a[i] - max[i % kPairs]) * scale)));
    sums[i % kPairs] += a[i];
  }
#else
  Vector most = set(hwy::LowestValue<float>()), sum = zero();
  for_columns(keys * kPairs, [&](int64_t i, auto io) HWY_ATTR { most = hn::Max(io.only(io.load(a + i), most), most); });
  each_lane(most, [&](int64_t h, float x) { max[h] = HWY_MAX(max[h], x); });
  const Vector shift = hn::LoadDup128(Floats(), max);
  for_columns(keys * kPairs, [&](int64_t i, auto io) HWY_ATTR {
    const Vector p = io.only(exp2(hn::Mul(hn::Sub(io.load(a + i), shift), set(scale))), zero());
    sum = hn::Add(sum, p);
    io.store(p, a + i);
  });
  each_lane(sum, [&](int64_t h, float x) { sums[h] += x; });
#endif
}

// y_l = Σ_j a[j, l] v_jl / sums[l] for C vectors of columns from `column`. Prefetches the keys of the next heads,
// unless the pairs are of one head.
template <int C, class Io>
HWY_INLINE void cached_mix(const float* a, const CachedPairs& at, const CachedRows& values, int64_t key_width,
                           int64_t column, const float* sums, Io io) {
  Vector sum[kPairs][C];
  clear_tile(sum);
  const int64_t next = at.k[kPairs - 1] + key_width, common = at.least_keys();
  const int64_t next_columns = column == 0 && !at.of_one_head() ? next - at.k[0] : 0;
  for (int64_t j = 0; j < common; j++) {
    const float* row = values.row(j) + column;
    prefetch(values.row(j) + next, next_columns);
    HWY_UNROLL(8)
    for (int l = 0; l < kPairs; l++) {
      const Vector p = set(a[j * kPairs + l]);
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[l][c] = hn::MulAdd(p, io.load(row + at.v[l] + c * lanes()), sum[l][c]);
    }
  }
  HWY_UNROLL(8)
  for (int l = 0; l < kPairs; l++)
    for (int64_t j = common; j < at.keys[l]; j++) {
      const float* row = values.row(j) + column + at.v[l];
      const Vector p = set(a[j * kPairs + l]);
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[l][c] = hn::MulAdd(p, io.load(row + c * lanes()), sum[l][c]);
    }
  HWY_UNROLL(8)
  for (int l = 0; l < kPairs; l++) {
    if (l >= at.count) break;
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) io.store(hn::Mul(sum[l][c], set(1 / sums[l])), at.y[l] + column + c * lanes());
  }
}

// a: scratch for [keys of query n, kPairs] and one more vector.
void AttendCached(const CachedAttention<float>& in, int64_t n, const CachedPairs& at, float* a) {
  const int64_t dk = in.key_width, dv = in.value_width;
  const CachedRows rows{in.cache.data, in.cache.stride, in.keys.begin[n], at.most_keys(), in.keys.rows};
  if (rows.count == 0) {
    for (int l = 0; l < at.count; l++) std::fill_n(at.y[l], dv, 0.0f);
    return;
  }
  float sums[kPairs];
  at.of_one_head() ? cached_scores_of_one_head(at, rows, dk, a) : cached_scores(at, rows, dk, a);
  float scale = in.scale;
  if (in.softcap > 0 || in.alibi || in.distance_bias.data) {
    cached_scores_adjusted(in, at, rows.count, scale, a);
    scale = 1;
  }
  for (int l = 0; l < kPairs; l++)
    for (int64_t j = at.keys[l]; j < rows.count; j++) a[j * kPairs + l] = hwy::LowestValue<float>();
  cached_exponentials(rows.count, kLog2e * scale, a, sums);
  int64_t c = 0;
  for (; c + kTileVectors * lanes() <= dv; c += kTileVectors * lanes())
    cached_mix<kTileVectors>(a, at, rows, dk, c, sums, WholeVector());
  for (; c + lanes() <= dv; c += lanes()) cached_mix<1>(a, at, rows, dk, c, sums, WholeVector());
  if (c < dv) cached_mix<1>(a, at, rows, dk, c, sums, PartOfVector(dv - c));
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AttendCached);

namespace {

constexpr int64_t kMinWork = 32768;  // multiply-adds that justify a task of their own

CachedPairs pairs_of(const CachedAttention<float>& in, Matrix<float> y, int64_t n, int64_t queries, int64_t h,
                     int64_t heads) {
  CachedPairs at;
  at.count = static_cast<int>(queries * heads);
  for (int l = 0; l < kPairs; l++) {
    const int64_t i = std::min(l, at.count - 1), row = n + i / heads, head = h + i % heads;
    at.q[l] = in.q.row(row) + head * in.key_width;
    const int64_t kv = head * in.kv_heads / in.heads;
    at.k[l] = kv * in.key_width;
    at.v[l] = in.kv_heads * in.key_width + kv * in.value_width;
    at.y[l] = y.row(row) + head * in.value_width;
    at.keys[l] = in.keys.end[row] - in.keys.begin[row];
    for (int place = l; in.alibi && place < kSlopes; place += kPairs) {
      at.slope[place] = in.alibi[head];
      at.last[place] = static_cast<float>(at.keys[l] - 1);
    }
    const DistanceBias<const float>& bias = in.distance_bias;
    at.bias[l] = bias.data ? bias.data + head * bias.width() + bias.reach : nullptr;
  }
  return at;
}

// Returns the number of kernel calls for `queries` queries that share keys.
int64_t groups_of(int64_t heads, int64_t queries) {
  const int64_t at_once = kPairs / queries;
  return (heads + at_once - 1) / at_once;
}

// Returns the end of the run of queries, at most kPairs, that have the keys of n and at most a few more: hypotheses of
// one sentence, or neighbouring tokens of one text.
int64_t end_of_same_keys(const CachedKeys& keys, int64_t n, int64_t N) {
  const auto shares = [&](int64_t other) {
    const int64_t more = keys.end[other] - keys.end[n];
    return keys.begin[other] == keys.begin[n] && more >= 0 && more < kPairs;
  };
  int64_t end = n + 1;
  while (keys.end[n] > keys.begin[n] && end < std::min(N, n + kPairs) && shares(end)) end++;
  return end;
}

}  // namespace

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
  const auto kernel = QKV_DISPATCH(AttendCached);
  const Arena::Scope scope(scratch);
  const int64_t stride = kPairs * longest + 16;
  float* weights = scratch.take<float>(threads() * stride);
  int64_t* firsts = scratch.take<int64_t>(y.rows + 1);  // first query of each run with the same keys
  int64_t count = 0;
  for (int64_t n = 0; n < y.rows; n = end_of_same_keys(in.keys, n, y.rows)) firsts[count++] = n;
  firsts[count] = y.rows;
  const int64_t work = std::max<int64_t>(
      1, y.rows * in.heads * longest * (in.key_width + in.value_width) / std::max<int64_t>(1, count));  // per run
  int64_t most_groups = 1;
  for (int64_t i = 0; i < count; i++)
    most_groups = std::max(most_groups, groups_of(in.heads, firsts[i + 1] - firsts[i]));
  const int64_t parts = std::clamp<int64_t>(work / kMinWork, 1, most_groups);  // parts of the heads
  // A part of all runs, one after the other: those of one text find its keys and values in the cache.
  parallel_blocks(count * parts, std::max<int64_t>(1, kMinWork * parts / work), [&](int64_t begin, int64_t end) {
    float* a = weights + thread_number() * stride;
    for (int64_t i = begin; i < end; i++) {
      const int64_t n = firsts[i % count], queries = firsts[i % count + 1] - n, part = i / count;
      const int64_t heads = kPairs / queries, groups = groups_of(in.heads, queries);
      for (int64_t g = groups * part / parts; g < groups * (part + 1) / parts; g++)
        kernel(in, n, pairs_of(in, y, n, queries, g * heads, std::min(heads, in.heads - g * heads)), a);
    }
  });
}

template <>
void cached_attention(const CachedAttention<double>& in, Matrix<double> y, Arena&) {
  reference::cached_attention(in, y);
}

}  // namespace qkv
#endif
