// Transposes by blocks of four lanes.
// Included once for every instruction set, hence the unusual guard.
#if defined(QKV_OPS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_TRANSPOSE_INL_H_
#undef QKV_OPS_TRANSPOSE_INL_H_
#else
#define QKV_OPS_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include "core/matrix.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// The vector whose blocks of four lanes, of type Lane, are at rows[0], rows[4], rows[8], … + offset.
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

// The 4 × 4 transposes of x0 … x3 in every block of four lanes.
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

// y(c, r) = x(r, c). The last row is repeated until a vector is full: y.stride >= x.rows rounded up to one.
HWY_INLINE void transpose(Matrix<const float> x, Matrix<float> y) {
  [[maybe_unused]] const Floats d;
  for (int64_t r = 0; r < x.rows; r += lanes()) {
    const float* rows[16];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = x.row(HWY_MIN(r + i, x.rows - 1));
    int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
    for (; c + 4 <= x.cols; c += 4) {
      Vector x0 = load_blocks(rows, c), x1 = load_blocks(rows + 1, c);
      Vector x2 = load_blocks(rows + 2, c), x3 = load_blocks(rows + 3, c);
      transpose_blocks(x0, x1, x2, x3);
      hn::StoreU(x0, d, y.row(c) + r);
      hn::StoreU(x1, d, y.row(c + 1) + r);
      hn::StoreU(x2, d, y.row(c + 2) + r);
      hn::StoreU(x3, d, y.row(c + 3) + r);
    }
#endif
    for (; c < x.cols; c++)
      for (int64_t i = 0; i < lanes(); i++) y(c, r + i) = rows[i][c];
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
