// Matrix products with 4-bit weights. Lanes are outputs. Weights are unpacked once for a tile of rows of X.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_INT4_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_INT4_LINEAR_INL_H_
#undef QKV_OPS_INT4_LINEAR_INL_H_
#else
#define QKV_OPS_INT4_LINEAR_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "core/quantized_matrix.h"
#include "ops/cpu/linear/four_bytes-inl.h"
#include "ops/cpu/linear/signed_bytes.h"
#include "ops/cpu/simd/tile-inl.h"
#include "ops/row_linear.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Adds the products of four unsigned weights below 16 and four signed bytes of x in every lane.
struct Nibbles {
  static HWY_INLINE IntVector add(IntVector weights, IntVector x, IntVector sum) {
#if HWY_TARGET == HWY_AVX3
    const __m512i pairs = _mm512_maddubs_epi16(weights.raw, x.raw);  // at most 2 · 15 · 127
    return hn::Add(sum, IntVector{_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))});
#elif HWY_TARGET == HWY_AVX2
    const __m256i pairs = _mm256_maddubs_epi16(weights.raw, x.raw);
    return hn::Add(sum, IntVector{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
#else
    uint8_t w[64];
    int8_t v[64];
    hn::StoreU(weights, Ints(), reinterpret_cast<int32_t*>(w));
    hn::StoreU(x, Ints(), reinterpret_cast<int32_t*>(v));
    alignas(64) int32_t products[16] = {};
    for (int64_t i = 0; i < 4 * lanes(); i++) products[i / 4] += int32_t{w[i]} * v[i];
    return hn::Add(sum, hn::Load(Ints(), products));
#endif
  }
};

#if HWY_TARGET == HWY_AVX3
// The same in one instruction (AVX512-VNNI).
struct NibblesVnni {
  static HWY_INLINE IntVector add(IntVector weights, IntVector x, IntVector sum) {
    __m512i result = sum.raw;
    asm("vpdpbusd %2, %1, %0" : "+v"(result) : "v"(weights.raw), "v"(x.raw));
    return IntVector{result};
  }
};
#endif

// Quantizes row n.
HWY_INLINE void quantize_row(const float* x, int64_t n, const SignedBytes& to) {
  constexpr int64_t kGroup = Int4Matrix::kGroup;
  const hn::Rebind<int8_t, Floats> d8;
  int8_t* bytes = to.data + n * to.stride;
  for (int64_t g = 0; g < to.groups; g++, x += kGroup, bytes += kGroup) {
    Vector largest = zero(), nothing = zero();
    for (int64_t i = 0; i < kGroup; i += lanes()) {
      const Vector v = hn::LoadU(Floats(), x + i);
      largest = hn::Max(largest, hn::Abs(v));
      nothing = hn::MulAdd(v, zero(), nothing);
    }
    const float most = max_of_lanes(largest), spoiled = sum_of_lanes(nothing);  // 0, or NaN
    if (spoiled != 0) {
      std::memset(bytes, 0, kGroup);
      to.scales[n * to.groups + g] = spoiled;
      to.offsets[n * to.groups + g] = 0;
      continue;
    }
    const Vector inverse = set(most > kLeastScaled ? 127 / most : 0);
    IntVector sum = hn::Zero(Ints());
    for (int64_t i = 0; i < kGroup; i += lanes()) {
      const IntVector rounded = hn::NearestInt(hn::Mul(hn::LoadU(Floats(), x + i), inverse));
      sum = hn::Add(sum, rounded);
      hn::StoreU(hn::DemoteTo(d8, rounded), d8, bytes + i);
    }
    to.scales[n * to.groups + g] = most / 127;
    to.offsets[n * to.groups + g] = -8 * hn::GetLane(hn::SumOfLanes(Ints(), sum));
  }
}

HWY_INLINE IntVector broadcast_four(const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, 4);
  return hn::Set(Ints(), four);
}

// Places of the weights of C vectors of outputs in one group of columns.
template <int C>
struct Int4Group {
  const std::byte* scales[C];
  const std::byte* bytes[C];

  HWY_INLINE Int4Group(const Int4Matrix& W, int64_t output) {
    HWY_UNROLL(2)
    for (int c = 0; c < C; c++) {
      const int64_t o = output + c * lanes(), lane = o % Int4Matrix::kRows;
      scales[c] = W.row_blocks(o) + 2 * lane;
      bytes[c] = W.row_blocks(o) + Int4Matrix::kScaleBytes + 4 * lane;
    }
  }
  // Moves on from group g, the first of a block if g is even, else the second.
  HWY_INLINE void next(int64_t g) {
    constexpr int64_t kScales = 2 * Int4Matrix::kRows;  // bytes
    const bool ends_block = g % 2 == 1;
    HWY_UNROLL(2)
    for (int c = 0; c < C; c++) {
      scales[c] += ends_block ? Int4Matrix::kBlockBytes - kScales : kScales;
      bytes[c] += ends_block ? Int4Matrix::kGroupBytes + Int4Matrix::kScaleBytes : Int4Matrix::kGroupBytes;
    }
  }
  HWY_INLINE Vector scale(int c) const {
    const hn::Rebind<hwy::float16_t, Floats> d16;
    return hn::PromoteTo(Floats(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(scales[c])));
  }
  HWY_INLINE void prefetch() const {
    constexpr int64_t kAhead = 4096;  // bytes; the hardware prefetcher does not cross the boundary of a page
    for (int64_t line = 0; line <= Int4Matrix::kGroupBytes; line += 64) __builtin_prefetch(bytes[0] + kAhead + line);
  }
};

// sum_rc += Σ over a group of 32 columns.
template <class Dot, int R, int C>
HWY_INLINE void add_group(const Int4Group<C>& weights, const int8_t* x, int64_t stride, IntVector (&sum)[R][C]) {
  const IntVector mask = hn::Set(Ints(), 0x0F0F0F0F);
  HWY_UNROLL(4)
  for (int k = 0; k < 4; k++) {
    IntVector lower[C], upper[C];
    HWY_UNROLL(2)
    for (int c = 0; c < C; c++) {
      const IntVector both = hn::LoadU(Ints(), reinterpret_cast<const int32_t*>(weights.bytes[c] + 64 * k));
      lower[c] = hn::And(both, mask);
      upper[c] = hn::And(hn::ShiftRight<4>(both), mask);
    }
    HWY_UNROLL(16)
    for (int r = 0; r < R; r++) {
      const int8_t* four = x + r * stride + 4 * k;
      const IntVector first = broadcast_four(four), second = broadcast_four(four + 16);
      HWY_UNROLL(2)
      for (int c = 0; c < C; c++) sum[r][c] = Dot::add(lower[c], first, sum[r][c]);
      HWY_UNROLL(2)
      for (int c = 0; c < C; c++) sum[r][c] = Dot::add(upper[c], second, sum[r][c]);
    }
  }
}

// Assigns R rows of Y, from `row`, for C vectors of outputs from `output`.
template <class Dot, int R, int C>
HWY_INLINE void int4_tile(const SignedBytes& x, const Int4Matrix& W, const float* b, int64_t row, int64_t output,
                          Matrix<float> Y) {
  Vector sum[R][C];
  HWY_UNROLL(16)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(2)
    for (int c = 0; c < C; c++) sum[r][c] = b ? hn::LoadU(Floats(), b + output + c * lanes()) : zero();
  }
  Int4Group<C> weights(W, output);
  const int64_t groups = x.groups;
  const int8_t* bytes = x.data + row * x.stride;
  const float* scales = x.scales + row * groups;
  const int32_t* offsets = x.offsets + row * groups;
  for (int64_t g = 0; g < groups; g++, bytes += Int4Matrix::kGroup) {
    if constexpr (R <= kFewInt4Rows) weights.prefetch();
    IntVector products[R][C];
    HWY_UNROLL(16)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(2)
      for (int c = 0; c < C; c++) products[r][c] = hn::Set(Ints(), offsets[r * groups + g]);
    }
    add_group<Dot, R, C>(weights, bytes, x.stride, products);
    HWY_UNROLL(2)
    for (int c = 0; c < C; c++) {
      const Vector scale = weights.scale(c);
      HWY_UNROLL(16)
      for (int r = 0; r < R; r++)
        sum[r][c] =
            hn::MulAdd(hn::ConvertTo(Floats(), products[r][c]), hn::Mul(scale, set(scales[r * groups + g])), sum[r][c]);
    }
    weights.next(g);
  }
  HWY_UNROLL(16)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(2)
    for (int c = 0; c < C; c++) hn::StoreU(sum[r][c], Floats(), Y.row(row + r) + output + c * lanes());
  }
}

// Assigns columns [begin, end) of the rows [first, last) of Y. Few rows read weights as one stream; many rows need more
// outputs in a tile, so that fewer of x are loaded.
template <class Dot>
HWY_INLINE void multiply_int4(const SignedBytes& x, const Int4Matrix& W, const float* b, int64_t first, int64_t last,
                              int64_t begin, int64_t end, Matrix<float> Y) {
  constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;
  constexpr int kTileRows = kManyRegisters ? 6 : kFewInt4Rows, kTileOutputs = kManyRegisters ? 2 : 1;
  for_tiles<kTileRows>(last - first, [&](int64_t row, int64_t rows) HWY_ATTR {
    const int64_t vectors = rows <= kFewInt4Rows ? 1 : kTileOutputs;
    for (int64_t o = begin; o < end; o += vectors * lanes())
      with_shape<kTileRows, kTileOutputs>(rows, HWY_MIN(vectors, (end - o) / lanes()), [&](auto R, auto C) HWY_ATTR {
        int4_tile<Dot, R(), C()>(x, W, b, first + row, o, Y);
      });
  });
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
