// Matrix products of tiles that stay in registers.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_TILE_INL_H_
#undef QKV_OPS_TILE_INL_H_
#else
#define QKV_OPS_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "ops/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Calls f(R, C) with compile-time constants: the smaller of kRows and rows, and the smaller of kVectors and vectors.
template <int kRows, int kVectors, class F>
HWY_INLINE void with_shape(int64_t rows, int64_t vectors, const F& f) {
  if constexpr (kRows > 1)
    if (rows < kRows) return with_shape<kRows - 1, kVectors>(rows, vectors, f);
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return with_shape<kRows, kVectors - 1>(rows, vectors, f);
  f(std::integral_constant<int, kRows>(), std::integral_constant<int, kVectors>());
}

// Calls f(first, count) for tiles of at most kRows rows, as equal in size as possible.
template <int kRows, class F>
HWY_INLINE void for_tiles(int64_t rows, const F& f) {
  const int64_t tiles = (rows + kRows - 1) / kRows;
  if (tiles == 0) return;
  const int64_t least = rows / tiles, longer = rows % tiles;
  for (int64_t t = 0, first = 0; t < tiles; t++) {
    const int64_t n = least + (t < longer);
    f(first, n);
    first += n;
  }
}

// The content of a lane of both operands of a product: one float.
struct FloatLane {
  static constexpr int64_t kEntries = 1;
  static HWY_INLINE Vector multiply_add(Vector x, Vector y, Vector sum) { return hn::MulAdd(x, y, sum); }
};

#if HWY_TARGET == HWY_AVX3
// Two consecutive bfloat16, on machines that multiply them (AVX512-BF16). Each product is exact in float32.
struct Bfloat16Lane {
  static constexpr int64_t kEntries = 2;
  static HWY_INLINE Vector multiply_add(Vector x, Vector y, Vector sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(y.raw));
    return sum;
  }
};
#endif

// sum_rc += Σ_e a_re b_ec for R rows of a and C vectors of columns of b; the last vector is read through `last`. This
// is the inner loop of all matrix products in the ops.
template <class Lane = FloatLane, int R, int C, class Io = WholeVector>
HWY_INLINE void multiply(const float* HWY_RESTRICT a, int64_t row_stride, int64_t depth_stride,
                         const float* HWY_RESTRICT b, int64_t b_stride, int64_t depth, Vector (&sum)[R][C],
                         Io last = {}) {
#pragma GCC unroll 4
  for (int64_t e = 0; e < depth; e++, a += depth_stride, b += b_stride) {
    Vector x[C];
    HWY_UNROLL(8)
    for (int c = 0; c + 1 < C; c++) x[c] = hn::LoadU(Floats(), b + c * lanes());
    x[C - 1] = last.load(b + (C - 1) * lanes());
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      const Vector y = set(a[r * row_stride]);
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[r][c] = Lane::multiply_add(y, x[c], sum[r][c]);
    }
  }
}

template <int R, int C>
HWY_INLINE void clear_tile(Vector (&x)[R][C]) {
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) x[r][c] = zero();
  }
}

template <int R, int C>
HWY_INLINE void load_tile(const float* from, int64_t stride, Vector (&x)[R][C]) {
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) x[r][c] = hn::Load(Floats(), from + r * stride + c * lanes());
  }
}

template <int R, int C>
HWY_INLINE void store_tile(const Vector (&x)[R][C], float* to, int64_t stride) {
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) hn::Store(x[r][c], Floats(), to + r * stride + c * lanes());
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
