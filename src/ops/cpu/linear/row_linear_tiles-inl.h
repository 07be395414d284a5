// The products of row_linear-inl.h with 8-bit weights by tiles of AMX: the same integers, and so the same results.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ROW_LINEAR_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ROW_LINEAR_TILES_INL_H_
#undef QKV_OPS_ROW_LINEAR_TILES_INL_H_
#else
#define QKV_OPS_ROW_LINEAR_TILES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "ops/cpu/linear/row_linear-inl.h"
#include "ops/cpu/simd/amx.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Products with 8-bit weights and inputs; a tile is 16 outputs × C tiles of 16 rows of X.
struct ByteTileProducts : ByteProducts<FourBytesVnni> {
  static constexpr int kTileOutputs = 16;
  static constexpr int64_t kTileGroups = 16, kTileBytes = 4 * kTileGroups;
  static constexpr int64_t kReadBeyond = (kTileGroups - 1) * kPanelWidth;
  using Setup = AmxTiles;

  HWY_INLINE Ahead after(int64_t output, int64_t depth, int64_t panels) const {
    return weights_ahead<kTileOutputs>(W.values, output, depth, panels);
  }

  template <int R, int C>
  HWY_INLINE void tile(int64_t output, const float* x, int64_t width, int64_t depth, int64_t row, Ahead& ahead,
                       float* to) const {
    if constexpr (R == 1) {
      ByteProducts<FourBytesVnni>::tile<R, C>(output, x, width, depth, row, ahead, to);
    } else {
      static_assert(R == kTileOutputs);
      alignas(64) int32_t sums[R][kPanelWidth];
      add_up<C>(W.values.row(output), x, width, depth, ahead, sums[0]);
      for (int64_t r = 0; r < R; r++) {
        const IntVector offset = hn::Set(Ints(), -128 * W.sums[output + r]);
        for (int64_t c = 0; c < C * lanes(); c += lanes())
          finish(output + r, row + c, hn::Add(hn::Load(Ints(), sums[r] + c), offset), to + r * kPanelWidth + c);
      }
    }
  }

 private:
  // Assigns sums: [16, kPanelWidth], the products of 16 rows of weights and C vectors of rows of X.
  template <int C>
  HWY_INLINE void add_up(const int8_t* w, const float* x, int64_t width, int64_t depth, Ahead& ahead,
                         int32_t* sums) const {
    constexpr int64_t kStride = kPanelWidth * 4;
    amx_zero<0>();
    if constexpr (C > 1) amx_zero<1>();
    if constexpr (C > 2) amx_zero<2>();
    const auto add = [&](const int8_t* weights, int64_t stride) HWY_ATTR {
      for (int64_t i = 0; i < kTileGroups; i += Ahead::kDepthStep) ahead.fetch();
      amx_load<3>(weights, stride);
      amx_load<4>(x, 4 * width);
      amx_add_products<0, 3, 4>();
      if constexpr (C > 1) amx_load<5>(x + lanes(), 4 * width), amx_add_products<1, 3, 5>();
      if constexpr (C > 2) amx_load<6>(x + 2 * lanes(), 4 * width), amx_add_products<2, 3, 6>();
    };
    int64_t g = 0;
    for (; g + kTileGroups <= depth; g += kTileGroups, x += kTileGroups * width) add(w + 4 * g, W.values.stride);
    if (g < depth) {
      alignas(64) int8_t last[kTileOutputs][kTileBytes] = {};  // zeros meet the rows of x after the last one
      for (int64_t r = 0; r < kTileOutputs; r++)
        std::memcpy(last[r], w + r * W.values.stride + 4 * g, static_cast<size_t>(4 * (depth - g)));
      add(last[0], kTileBytes);
    }
    amx_store<0>(sums, kStride);
    if constexpr (C > 1) amx_store<1>(sums + lanes(), kStride);
    if constexpr (C > 2) amx_store<2>(sums + 2 * lanes(), kStride);
  }
};

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_AVX3

#endif  // per-target include guard
