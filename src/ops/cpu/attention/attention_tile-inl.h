// Products of register tiles, where attention spends most of its time.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ATTENTION_TILE_INL_H_
#undef QKV_OPS_ATTENTION_TILE_INL_H_
#else
#define QKV_OPS_ATTENTION_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include "ops/cpu/attention/attention_workspace.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/cpu/simd/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// A tile is kTileRows × kTileVectors vectors: 24 sums in 32 registers, or 12 sums in 16.
constexpr int kTileVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;

// c += A b for R rows and all columns of c. Rows of A are row_stride apart, columns depth_stride. c and b hold whole
// vectors.
template <int R, int kVectors = kTileVectors>
HWY_INLINE void add_product(const float* a, int64_t row_stride, int64_t depth_stride, Matrix<const float> b,
                            Matrix<float> c) {
  const int64_t vectors = (c.cols + lanes() - 1) / lanes();
  for (int64_t v = 0; v < vectors; v += kVectors)
    with_shape<1, kVectors>(1, vectors - v, [&](auto, auto C) HWY_ATTR {
      Vector sum[R][C()];
      load_tile(c.data + v * lanes(), c.stride, sum);
      multiply(a, row_stride, depth_stride, b.data + v * lanes(), b.stride, b.rows, sum);
      store_tile(sum, c.data + v * lanes(), c.stride);
    });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
