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

// The rows of one query in some columns of the cache: what a matrix is to `mix`, wherever the rows lie.
struct CachedRows {
  const float* data;
  int64_t stride, first, rows, cols;
  const int32_t* places;  // or null

  HWY_INLINE const float* row(int64_t j) const {
    return data + (places ? int64_t{places[first + j]} : first + j) * stride;
  }
  HWY_INLINE CachedRows col_range(int64_t begin, int64_t end) const {
    return {data + begin, stride, first, rows, end - begin, places};
  }
};

// One query and head; a: [keys, rounded up to whole vectors and four more].
void CachedAttentionRow(const CachedAttention<float>& in, int64_t n, int64_t h, float* a, float* y) {
  const int64_t dk = in.key_width, dv = in.value_width;
  const CachedRows all{in.cache.data, in.cache.stride, in.keys.begin[n], in.keys.end[n] - in.keys.begin[n],
                       in.cache.cols, in.keys.rows};
  const CachedRows k = all.col_range(h * dk, h * dk + dk);
  const CachedRows v = all.col_range(in.heads * dk + h * dv, in.heads * dk + h * dv + dv);
  const float* q = in.q.row(n) + h * dk;
  if (all.rows == 0) return void(std::fill_n(y, dv, 0.0f));
  for (int64_t j = 0; j < all.rows; j += 4) {
    const int64_t last = all.rows - 1;
    const float* const keys[4] = {k.row(j), k.row(HWY_MIN(j + 1, last)), k.row(HWY_MIN(j + 2, last)),
                                  k.row(HWY_MIN(j + 3, last))};
    four_dots(q, keys, dk, a + j);
  }
  const float scale = kLog2e / std::sqrt(static_cast<float>(dk));
  Vector most = set(hwy::LowestValue<float>());
  for_columns(all.rows, [&](int64_t j, auto io) HWY_ATTR { most = hn::Max(io.only(io.load(a + j), most), most); });
  const Vector max = set(max_of_lanes(most));
  Vector sums = zero();
  for_columns(all.rows, [&](int64_t j, auto io) HWY_ATTR {
    const Vector p = io.only(exp2(hn::Mul(hn::Sub(io.load(a + j), max), set(scale))), zero());
    sums = hn::Add(sums, p);
    io.store(p, a + j);
  });
  mix(a, v, 1 / sum_of_lanes(sums), y);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(CachedAttentionRow);

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
  const auto kernel = QKV_DISPATCH(CachedAttentionRow);
  const Arena::Scope scope(scratch);
  const int64_t stride = (longest + 3) / 4 * 4 + 16;
  float* weights = scratch.take<float>(threads() * stride);
  const int64_t work = std::max<int64_t>(1, longest * (in.key_width + in.value_width));  // of one query and head
  parallel_blocks(y.rows * in.heads, std::max<int64_t>(1, 32768 / work), [&](int64_t begin, int64_t end) {
    float* a = weights + omp_get_thread_num() * stride;
    for (int64_t i = begin; i < end; i++)
      kernel(in, i / in.heads, i % in.heads, a, y.row(i / in.heads) + i % in.heads * in.value_width);
  });
}

template <>
void cached_attention(const CachedAttention<double>& in, Matrix<double> y, Arena&) {
  reference::cached_attention(in, y);
}

}  // namespace qkv
#endif
