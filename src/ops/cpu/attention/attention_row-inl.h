// Attention for one query at a time, with K and V read in place: for few queries, for rows that the tiles cannot
// compute, and for attention weights to display.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ATTENTION_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ATTENTION_ROW_INL_H_
#undef QKV_OPS_ATTENTION_ROW_INL_H_
#else
#define QKV_OPS_ATTENTION_ROW_INL_H_
#endif

#include "ops/cpu/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// dots[u] = q · k[u], u < 4.
template <class T>
HWY_INLINE void four_dots(const T* q, const T* const (&k)[4], int64_t depth, float* dots) {
  Vector a0 = zero(), a1 = zero(), a2 = zero(), a3 = zero();
  for_columns(depth, [&](int64_t c, auto io) HWY_ATTR {
    const Vector x = io.load(q + c);
    a0 = hn::MulAdd(x, io.load(k[0] + c), a0);
    a1 = hn::MulAdd(x, io.load(k[1] + c), a1);
    a2 = hn::MulAdd(x, io.load(k[2] + c), a2);
    a3 = hn::MulAdd(x, io.load(k[3] + c), a3);
  });
  four_sums(a0, a1, a2, a3, dots);
}

// out_c = factor · Σ_j a_j v_jc for C vectors of columns, with eight independent sums.
template <int C, class T, class Io>
HWY_INLINE void mix_columns(const float* a, Matrix<const T> v, float factor, T* out, Io io) {
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

// out = factor · Σ_j a_j v_j
template <class T>
HWY_INLINE void mix(const float* a, Matrix<const T> v, float factor, T* out) {
  int64_t c = 0;
  for (; c + 4 * lanes() <= v.cols; c += 4 * lanes())
    mix_columns<4>(a, v.col_range(c, v.cols), factor, out + c, WholeVector());
  for (; c + 2 * lanes() <= v.cols; c += 2 * lanes())
    mix_columns<2>(a, v.col_range(c, v.cols), factor, out + c, WholeVector());
  for_columns(v.cols - c, [&](int64_t e, auto io)
                              HWY_ATTR { mix_columns<1>(a, v.col_range(c + e, v.cols), factor, out + c + e, io); });
}

// The same if some values are not finite: a key of weight zero contributes nothing, whatever its value.
template <class T>
HWY_NOINLINE void mix_nonzero(const float* a, Matrix<const T> v, float factor, T* out) {
  for (int64_t c = 0; c < v.cols; c++) {
    float sum = 0;
    for (int64_t j = 0; j < v.rows; j++)
      if (a[j] != 0) sum += a[j] * static_cast<float>(v(j, c));
    out[c] = static_cast<T>(factor * sum);
  }
}

template <class T>
HWY_INLINE bool all_finite(const T* x, int64_t n) {
  Vector nothing = zero();
  for_columns(n, [&](int64_t c, auto io) HWY_ATTR { nothing = hn::MulAdd(io.load(x + c), zero(), nothing); });
  return sum_of_lanes(nothing) == 0;
}

// Writes the scores of query i in units of log 2 to a: [padded(S)], with −∞ for the keys that it does not see. Returns
// the keys that it sees; only these entries of a, and those that share a vector with them, are written.
template <class T>
HWY_INLINE TokenRange row_scores(const AttentionInput<T>& in, const HeadView& head, int64_t i, float* a) {
  const Floats d;
  const Matrix<const T> k = head.keys(in.k, in.key_width);
  const T* q = in.q.at(head.s, head.at.q0 + i, head.h);
  const TokenRange seen = head.visible(i);
  if (seen.empty()) return seen;
  const int64_t first = seen.begin / lanes() * lanes(), end = padded(seen.end);
  for (int64_t j = first; j < seen.end; j += 4) {
    const int64_t last = seen.end - 1;
    const T* const keys[4] = {k.row(j), k.row(HWY_MIN(j + 1, last)), k.row(HWY_MIN(j + 2, last)),
                              k.row(HWY_MIN(j + 3, last))};
    four_dots(q, keys, k.cols, a + j);
  }
  for (int64_t j = first; j < seen.end; j += lanes())
    hn::StoreU(hn::Mul(hn::LoadU(d, a + j), set(head.scale2())), d, a + j);
  if (head.adjusts) adjust_scores(head, i, 1, first, round_up(seen.end, lanes()) - first, a + first, 0, nullptr);
  std::fill(a + first, a + seen.begin, -HUGE_VALF);
  std::fill(a + seen.end, a + end, -HUGE_VALF);
  return seen;
}

// Computes one query; a: [padded(S)] is scratch. Returns the log-sum-exp.
template <class T>
HWY_NOINLINE float attend_row(const AttentionInput<T>& in, const HeadView& head, int64_t i, DropoutFactors* factors,
                              float* a, T* out) {
  const Floats d;
  const TokenRange seen = row_scores(in, head, i, a);
  const int64_t first = seen.begin / lanes() * lanes(), end = seen.empty() ? first : seen.end;
  Vector most = set(-HUGE_VALF);
  for (int64_t j = first; j < end; j += lanes()) most = hn::Max(hn::LoadU(d, a + j), most);
  const float max = HWY_MAX(max_of_lanes(most), hwy::LowestValue<float>());  // finite, so that hidden keys keep −∞
  Vector sums = zero();
  for (int64_t j = first; j < end; j += lanes()) {
    const Vector p = exp2(hn::Sub(hn::LoadU(d, a + j), set(max)));
    sums = hn::Add(sums, p);
    hn::StoreU(p, d, a + j);
  }
  const float sum = sum_of_lanes(sums);
  if (sum == 0) {  // no key is visible
    std::fill_n(out, in.value_width, T());
    return -HUGE_VALF;
  }
  if (factors)
    for (int64_t j = first; j < end; j += lanes()) {
      if (j == first || j % 128 == 0) factors->draw(head.at.first_row + i, j / 128);
      hn::StoreU(hn::Mul(hn::LoadU(d, a + j), factors->at(j % 128)), d, a + j);
    }
  const Matrix<const T> v = head.keys(in.v, in.value_width).row_range(seen.begin, seen.end);
  mix(a + seen.begin, v, 1.0f / sum, out);
  if (!all_finite(out, in.value_width)) mix_nonzero(a + seen.begin, v, 1.0f / sum, out);
  return max / kLog2e + std::log(sum);
}

// Assigns A_j = 2^(s_j − lse) for query i, with lse in natural units; A: [S].
template <class T>
HWY_INLINE void row_weights(const AttentionInput<T>& in, const HeadView& head, int64_t i, float lse, float* a,
                            float* A) {
  const TokenRange seen = row_scores(in, head, i, a);
  std::fill_n(A, head.at.S, 0.0f);
  if (lse == -HUGE_VALF) return;
  for_columns(seen.size(), [&](int64_t c, auto io) HWY_ATTR {
    io.store(exp2(hn::Sub(io.load(a + seen.begin + c), set(lse * kLog2e))), A + seen.begin + c);
  });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
