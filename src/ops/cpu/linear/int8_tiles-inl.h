// The products of int8_product-inl.h by tiles of AMX: the same integers, and so the same results.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_INT8_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_INT8_TILES_INL_H_
#undef QKV_OPS_INT8_TILES_INL_H_
#else
#define QKV_OPS_INT8_TILES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "ops/cpu/linear/int8_product-inl.h"
#include "ops/cpu/simd/amx.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Up to 32 rows of a left operand in one block of the depth, one after the other, with zeros after their end.
struct Int8TileRows {
  static constexpr int64_t kRows = 32, kBytes = 64;  // of two tiles
  static constexpr int64_t kStride = (DepthBlocks::kLongest + kBytes - 1) / kBytes * kBytes;
  alignas(64) int8_t bytes[kRows * kStride];
  int64_t tiles;  // along the depth

  HWY_INLINE void set(const Int8Left& a, int64_t rows, int64_t groups) {
    tiles = (4 * groups + kBytes - 1) / kBytes;
    if (a.depth_stride == 1)
      for (int64_t r = 0; r < rows; r++)
        std::memcpy(row(r), a.fours + r * a.row_stride, static_cast<size_t>(4 * groups));
    else
      transpose({reinterpret_cast<const float*>(a.fours), groups, rows, a.depth_stride},
                {reinterpret_cast<float*>(bytes), rows, groups, kStride / 4});
    for (int64_t r = 0; r < rows; r++)
      std::memset(row(r) + 4 * groups, 0, static_cast<size_t>(kBytes * tiles - 4 * groups));
  }
  HWY_INLINE int8_t* row(int64_t r) { return bytes + r * kStride; }
};

// Assigns sums: [32, 16 C], the products of 32 rows and C vectors of columns of a panel of `width` columns. Rows of the
// panel after its last one, which meet zeros, are read too.
template <int C>
HWY_NOINLINE void int8_tile_sums(const Int8TileRows& a, const int32_t* panel, int64_t width, int32_t* sums) {
  constexpr int64_t kRow = Int8TileRows::kStride, kSums = 64 * C;
  amx_zero<0>(), amx_zero<1>();
  if constexpr (C > 1) amx_zero<2>(), amx_zero<3>();
  for (int64_t t = 0; t < a.tiles; t++, panel += 16 * width) {
    amx_load<4>(a.bytes + 64 * t, kRow);
    amx_load<6>(panel, 4 * width);
    amx_add_products<0, 4, 6>();
    amx_load<5>(a.bytes + 16 * kRow + 64 * t, kRow);
    amx_add_products<1, 5, 6>();
    if constexpr (C > 1) {
      amx_load<7>(panel + 16, 4 * width);
      amx_add_products<2, 4, 7>();
      amx_add_products<3, 5, 7>();
    }
  }
  amx_store<0>(sums, kSums), amx_store<1>(sums + 16 * 16 * C, kSums);
  if constexpr (C > 1) amx_store<2>(sums + 16, kSums), amx_store<3>(sums + 16 * 16 * C + 16, kSums);
}

// multiply_block of up to 32 rows and C vectors of columns.
template <int C>
HWY_NOINLINE void int8_tiles(const Int8Left& a, const Int8TileRows& rows, const int32_t* panel, int64_t width,
                             const float* scales, const float* b, bool accumulate, Matrix<float> Y) {
  alignas(64) int32_t sums[Int8TileRows::kRows * 16 * C];
  int8_tile_sums<C>(rows, panel, width, sums);
  each_vector<C>(Y.cols, [&](int c, auto io) HWY_ATTR {
    const Vector scale = hn::LoadU(Floats(), scales + 16 * c), start = b ? io.load(b + 16 * c) : zero();
    for (int64_t r = 0; r < Y.rows; r++) {
      float* y = Y.row(r) + 16 * c;
      const IntVector sum = hn::Add(hn::Load(Ints(), sums + 16 * (C * r + c)), hn::Set(Ints(), a.offsets[r]));
      io.store(scaled_sum(sum, a.scales[r], scale, accumulate ? io.load(y) : start), y);
    }
  });
}

struct ByTiles {
  // As ByVectors.
  static HWY_INLINE void multiply(const Int8Left& a, const Int8Columns& B, int64_t block, int64_t begin, const float* b,
                                  bool accumulate, Matrix<float> Y) {
    const int64_t groups = B.blocks.groups(block);
    const AmxTiles tiles;
    Int8TileRows rows;
    for (int64_t r = 0; r < Y.rows; r += Int8TileRows::kRows) {
      const int64_t last = HWY_MIN(Y.rows, r + Int8TileRows::kRows);
      rows.set(a.from(r), last - r, groups);
      for (int64_t c = 0; c < Y.cols; c += 32) {
        const int64_t at = c / panel_width() * panel_width(), end = HWY_MIN(Y.cols, c + 32);
        const int32_t* columns = B.block(block) + (begin + at) * groups + c - at;
        const auto multiply_tiles = end - c > 16 ? int8_tiles<2> : int8_tiles<1>;
        multiply_tiles(a.from(r), rows, columns, width_of_panel(Y.cols - at), B.scales + block * B.stride + begin + c,
                       b ? b + c : nullptr, accumulate, Y.row_range(r, last).col_range(c, end));
      }
    }
  }
};

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_AVX3

#endif  // per-target include guard
