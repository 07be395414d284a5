// The tail of a product: the columns beyond its last whole vector, if they are so few that a vector for them would be
// almost empty. For the tail, lanes are keys instead of columns. Heads of width 50 = 3 · 16 + 2 are common.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ATTENTION_TAIL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ATTENTION_TAIL_INL_H_
#undef QKV_OPS_ATTENTION_TAIL_INL_H_
#else
#define QKV_OPS_ATTENTION_TAIL_INL_H_
#endif

#include "ops/cpu/attention/attention_pack-inl.h"
#include "ops/cpu/attention/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Returns the number of columns in the tail; 0 if they fill more than a quarter of a vector.
HWY_INLINE int64_t tail(int64_t cols) {
  const int64_t n = cols % lanes();
  return 4 * n <= lanes() ? n : 0;
}
template <class T>
HWY_INLINE Matrix<T> without_tail(Matrix<T> x) {
  return x.col_range(0, x.cols - tail(x.cols));
}

// Writes the tail of rows [begin, end) of x, transposed, to `to`: [kMaxTail, padded(x.rows)], with zeros after the last
// row.
template <class T>
HWY_INLINE void pack_tail(Matrix<const T> x, TokenRange rows, float* to) {
  const Matrix<const T> from = x.col_range(x.cols - tail(x.cols), x.cols);
  for (int64_t t = 0; t < from.cols; t++, to += padded(x.rows)) {
    for (int64_t j = rows.begin; j < rows.end; j++) to[j] = static_cast<float>(from(j, t));
    if (rows.end == x.rows) std::fill(to + x.rows, to + padded(x.rows), 0.0f);
  }
}
// Returns the view of what pack_tail wrote for an array [rows, cols].
HWY_INLINE Matrix<const float> packed_tail(const float* packed, int64_t rows, int64_t cols) {
  return {packed, tail(cols), rows, padded(rows)};
}

// c_rt += Σ_j a_rj b_tj for R rows of a; t counts from the end of c. Rows of a and b are whole vectors.
template <int R>
HWY_INLINE void add_dots(const float* a, int64_t stride, Matrix<const float> b, Matrix<float> c) {
  for (int64_t t = 0; t < b.rows; t++) {
    Vector sum[8];
    HWY_UNROLL(8)
    for (int r = 0; r < 8; r++) sum[r] = zero();
    for (int64_t j = 0; j < b.cols; j += lanes()) {
      const Vector y = hn::Load(Floats(), b.row(t) + j);
      HWY_UNROLL(8)
      for (int r = 0; r < R; r++) sum[r] = hn::MulAdd(hn::Load(Floats(), a + r * stride + j), y, sum[r]);
    }
    float total[8];
    four_sums(sum[0], sum[1], sum[2], sum[3], total);
    if constexpr (R > 4) four_sums(sum[4], sum[5], sum[6], sum[7], total + 4);
    for (int r = 0; r < R; r++) c(r, c.cols + t) += total[r];
  }
}

// c_jt += Σ_i p_ij x_it for the keys j of a panel and the columns t in the tail of x, which follows the columns of c.
// p: [x.rows, kPanel].
inline HWY_NOINLINE void add_tail_of_keys(const float* p, Matrix<const float> x, Matrix<float> c) {
  const int64_t n = x.cols - c.cols;
  HWY_ALIGN float sums[kMaxTail * kPanel];
  for (int64_t j = 0; j < c.rows; j += kTileVectors * lanes())
    with_shape<kMaxTail, kTileVectors>(n, (c.rows - j + lanes() - 1) / lanes(), [&](auto R, auto C) HWY_ATTR {
      Vector sum[R()][C()];
      clear_tile(sum);
      multiply(x.data + c.cols, 1, x.stride, p + j, kPanel, x.rows, sum);
      store_tile(sum, sums + j, kPanel);
    });
  for (int64_t j = 0; j < c.rows; j++)
    for (int64_t t = 0; t < n; t++) c(j, c.cols + t) += sums[t * kPanel + j];
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
