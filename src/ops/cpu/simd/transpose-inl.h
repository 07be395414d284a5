// Matrix transposition by blocks of four lanes.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_TRANSPOSE_INL_H_
#undef QKV_OPS_TRANSPOSE_INL_H_
#else
#define QKV_OPS_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include "ops/cpu/simd/simd-inl.h"
#include "qkv/matrix.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Returns the vector whose blocks of four lanes, of type Lane, are read from rows[0], rows[4], rows[8], … at `offset`.
template <class Lane, class T>
HWY_INLINE auto load_blocks(const T* const* rows, int64_t offset) {
  const hn::CappedTag<Lane, 4> d4;
  const auto block = [&](int row) HWY_ATTR { return hn::LoadU(d4, reinterpret_cast<const Lane*>(rows[row] + offset)); };
#if HWY_TARGET == HWY_AVX3
  const hn::CappedTag<Lane, 8> d8;
  const hn::CappedTag<Lane, 16> d16;
  return hn::Combine(d16, hn::Combine(d8, block(12), block(8)), hn::Combine(d8, block(4), block(0)));
#elif HWY_TARGET == HWY_AVX2
  const hn::CappedTag<Lane, 8> d8;
  return hn::Combine(d8, block(4), block(0));
#else
  return block(0);
#endif
}
HWY_INLINE Vector load_blocks(const float* const* rows, int64_t offset) { return load_blocks<float>(rows, offset); }
HWY_INLINE Vector load_blocks(const bfloat16* const* rows, int64_t offset) {
  return widen(load_blocks<uint16_t>(rows, offset));
}

// Transposes the 4 × 4 matrices that x0 … x3 hold in each block of four lanes.
HWY_INLINE void transpose_blocks(Vector& x0, Vector& x1, Vector& x2, Vector& x3) {
  const Floats d;
  const Vector low02 = hn::InterleaveLower(d, x0, x2), high02 = hn::InterleaveUpper(d, x0, x2);
  const Vector low13 = hn::InterleaveLower(d, x1, x3), high13 = hn::InterleaveUpper(d, x1, x3);
  x0 = hn::InterleaveLower(d, low02, low13);
  x1 = hn::InterleaveUpper(d, low02, low13);
  x2 = hn::InterleaveLower(d, high02, high13);
  x3 = hn::InterleaveUpper(d, high02, high13);
}
#endif

// Assigns to[u] = the lanes of vector u folded into one number, u < 4. fold(x, y) must accept vectors of any length.
template <class Fold>
HWY_INLINE void fold_four(Vector a0, Vector a1, Vector a2, Vector a3, const Fold& fold, float* to) {
#if HWY_TARGET == HWY_SCALAR
  (void)fold;
  to[0] = a0.raw, to[1] = a1.raw, to[2] = a2.raw, to[3] = a3.raw;
#else
  transpose_blocks(a0, a1, a2, a3);
  const Vector folded = fold(fold(a0, a2), fold(a1, a3));  // within each block
  const hn::CappedTag<float, 4> d4;
#if HWY_TARGET == HWY_AVX3
  const hn::CappedTag<float, 8> d8;
  const auto half = fold(hn::LowerHalf(d8, folded), hn::UpperHalf(d8, folded));
  hn::StoreU(fold(hn::LowerHalf(half), hn::UpperHalf(d4, half)), d4, to);
#elif HWY_TARGET == HWY_AVX2
  hn::StoreU(fold(hn::LowerHalf(folded), hn::UpperHalf(d4, folded)), d4, to);
#else
  hn::StoreU(folded, d4, to);
#endif
#endif
}
HWY_INLINE void four_sums(Vector a0, Vector a1, Vector a2, Vector a3, float* to) {
  fold_four(
      a0, a1, a2, a3, [](auto x, auto y) HWY_ATTR { return hn::Add(x, y); }, to);
}
HWY_INLINE void four_maxima(Vector a0, Vector a1, Vector a2, Vector a3, float* to) {
  fold_four(
      a0, a1, a2, a3, [](auto x, auto y) HWY_ATTR { return hn::Max(x, y); }, to);
}

// Calls f(c, column) for every column of `rows`, one row per lane of a vector.
template <class F>
HWY_INLINE void for_columns_of(const float* const* rows, int64_t cols, const F& f) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; c + 4 <= cols; c += 4) {
    Vector x0 = load_blocks(rows, c), x1 = load_blocks(rows + 1, c);
    Vector x2 = load_blocks(rows + 2, c), x3 = load_blocks(rows + 3, c);
    transpose_blocks(x0, x1, x2, x3);
    f(c, x0);
    f(c + 1, x1);
    f(c + 2, x2);
    f(c + 3, x3);
  }
#endif
  for (; c < cols; c++) {
    float column[16];
    for (int64_t i = 0; i < lanes(); i++) column[i] = rows[i][c];
    f(c, hn::LoadU(Floats(), column));
  }
}

// y(c, r) = x(r, c). The last row is repeated until a vector is full, so y.stride must be at least x.rows rounded up to
// a whole vector.
HWY_INLINE void transpose(Matrix<const float> x, Matrix<float> y) {
  for (int64_t r = 0; r < x.rows; r += lanes()) {
    const float* rows[16];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = x.row(HWY_MIN(r + i, x.rows - 1));
    for_columns_of(rows, x.cols,
                   [&](int64_t c, Vector column) HWY_ATTR { hn::StoreU(column, Floats(), y.row(c) + r); });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
