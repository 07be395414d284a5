// Products of matrices in 8 bits by register tiles. Lanes are columns of the right operand. Sums of integers are exact,
// so a result depends neither on the tiles nor on the instruction set.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_INT8_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_INT8_PRODUCT_INL_H_
#undef QKV_OPS_INT8_PRODUCT_INL_H_
#else
#define QKV_OPS_INT8_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include "ops/cpu/linear/four_bytes-inl.h"
#include "ops/cpu/linear/int8_operands.h"
#include "ops/cpu/linear/product-inl.h"
#include "ops/row_linear.h"
#include "qkv/matrix.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

HWY_INLINE int64_t panel_width() { return kProductVectors * lanes(); }
// Returns the width of the panel that begins `cols` columns before the end, which is whole vectors.
HWY_INLINE int64_t width_of_panel(int64_t cols) {
  return (HWY_MIN(cols, panel_width()) + lanes() - 1) / lanes() * lanes();
}

// The largest magnitude, and the factor and the scale of quantization.
struct Int8Scale {
  Vector largest, nothing;

  HWY_INLINE void see(Vector x) {
    largest = hn::Max(largest, hn::Abs(x));
    nothing = hn::MulAdd(x, zero(), nothing);  // NaN if x is NaN or infinite
  }
  HWY_INLINE Vector inverse() const {
    return hn::IfThenElseZero(hn::Gt(largest, set(kLeastScaled)), hn::Div(set(127), largest));
  }
  HWY_INLINE Vector scale() const { return hn::Add(hn::Div(largest, set(127)), nothing); }
};

// Assigns groups of four numbers of one vector of columns. each(f) calls f(x) for the rows in order; `to` has the first
// group, and the next ones `width` after each other.
template <bool kSigned, class Each>
HWY_INLINE void quantize_columns(const Each& each, int32_t* to, int64_t width, float* scale, int32_t* offset) {
  const hn::RebindToUnsigned<Floats> du;
  Int8Scale s{zero(), zero()};
  each([&](Vector x) HWY_ATTR { s.see(x); });
  const Vector inverse = s.inverse();
  IntVector sum = hn::Zero(Ints());
  auto four = hn::Zero(du);
  int64_t count = 0;
  const auto append = [&](Vector x) HWY_ATTR {
    const IntVector n = hn::NearestInt(hn::Mul(x, inverse));
    sum = hn::Add(sum, n);
    const IntVector byte = kSigned ? n : hn::Add(n, hn::Set(Ints(), 128));
    four = hn::Or(hn::ShiftRight<8>(four), hn::ShiftLeft<24>(hn::BitCast(du, byte)));
    if (++count % 4) return;
    hn::StoreU(hn::BitCast(Ints(), four), Ints(), to);
    to += width;
  };
  each(append);
  while (count % 4) append(zero());
  hn::StoreU(s.scale(), Floats(), scale);
  hn::StoreU(hn::Mul(sum, hn::Set(Ints(), -128)), Ints(), offset);
}

// Calls f(begin, vector, to, width) for the vectors of columns [begin, end), which are whole panels; `vector` is the
// column at which a vector begins.
template <class F>
HWY_INLINE void for_panel_vectors(const Int8Columns& to, int64_t block, int64_t begin, int64_t end, const F& f) {
  for (int64_t p = begin; p < end; p += panel_width()) {
    const int64_t width = width_of_panel(end - p);
    int32_t* panel = to.block(block) + p * to.blocks.groups(block);
    for (int64_t c = 0; c < width; c += lanes()) f(p + c, panel + c, width);
  }
}

// Quantizes columns [begin, end) of M: [depth, cols] in one block of the depth.
template <bool kSigned>
HWY_INLINE void pack_columns(Matrix<const float> M, int64_t block, int64_t begin, int64_t end, const Int8Columns& to) {
  const int64_t first = to.blocks.begin(block), last = to.blocks.begin(block + 1), at = block * to.stride;
  for_panel_vectors(to, block, begin, end, [&](int64_t c, int32_t* fours, int64_t width) HWY_ATTR {
    const auto pack = [&](auto io) HWY_ATTR {
      const auto each = [&](const auto& f) HWY_ATTR {
        for (int64_t k = first; k < last; k++) f(io.load(M.row(k) + c));
      };
      quantize_columns<kSigned>(each, fours, width, to.scales + at + c, to.offsets + at + c);
    };
    M.cols - c < lanes() ? pack(PartOfVector(M.cols - c)) : pack(WholeVector());
  });
}

// The same for columns of Wᵀ, where W: [cols, depth].
HWY_INLINE void pack_transposed_columns(Matrix<const float> W, int64_t block, int64_t begin, int64_t end,
                                        const Int8Columns& to) {
  const int64_t first = to.blocks.begin(block), depth = to.blocks.begin(block + 1) - first, at = block * to.stride;
  for_panel_vectors(to, block, begin, end, [&](int64_t c, int32_t* fours, int64_t width) HWY_ATTR {
    const float* rows[16];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = W.row(HWY_MIN(c + i, W.rows - 1)) + first;
    const auto each = [&](const auto& f)
                          HWY_ATTR { for_columns_of(rows, depth, [&](int64_t, Vector x) HWY_ATTR { f(x); }); };
    quantize_columns<false>(each, fours, width, to.scales + at + c, to.offsets + at + c);
  });
}

// Quantizes row n.
HWY_INLINE void quantize_row(const float* x, int64_t n, const Int8Rows& to) {
  const hn::Rebind<int8_t, Floats> d8;
  for (int64_t block = 0; block < to.blocks.count(); block++) {
    const int64_t first = to.blocks.begin(block), count = to.blocks.begin(block + 1) - first;
    Int8Scale s{zero(), zero()};
    for_columns(count, [&](int64_t c, auto io) HWY_ATTR { s.see(io.load(x + first + c)); });
    s.largest = hn::MaxOfLanes(Floats(), s.largest);
    s.nothing = hn::SumOfLanes(Floats(), s.nothing);
    const Vector inverse = s.inverse();
    IntVector sum = hn::Zero(Ints());
    int8_t* bytes = to.bytes + n * to.stride + first;
    for_columns(count, [&](int64_t c, auto io) HWY_ATTR {
      // Within ±127 also if x is NaN, so that the sum does not overflow.
      const IntVector i = hn::Clamp(hn::NearestInt(hn::Mul(io.load(x + first + c), inverse)), hn::Set(Ints(), -127),
                                    hn::Set(Ints(), 127));
      sum = hn::Add(sum, i);
      hn::StoreU(hn::DemoteTo(d8, i), d8, bytes + c);
    });
    for (int64_t i = count; i < 4 * to.blocks.groups(block); i++) bytes[i] = 0;
    to.scales[block * to.rows + n] = hn::GetLane(s.scale());
    to.offsets[block * to.rows + n] = -128 * hn::GetLane(hn::SumOfLanes(Ints(), sum));
  }
}

// Some rows of a left operand in one block of the depth.
struct Int8Left {
  const int32_t* fours;
  int64_t row_stride, depth_stride;  // of a group of four
  const float* scales;
  const int32_t* offsets;

  HWY_INLINE Int8Left from(int64_t row) const {
    return {fours + row * row_stride, row_stride, depth_stride, scales + row, offsets + row};
  }
};

// Returns a vector of a row of A B + `start` in one block of the depth.
HWY_INLINE Vector scaled_sum(IntVector sum, float row_scale, Vector scale, Vector start) {
  return hn::MulAdd(hn::ConvertTo(Floats(), sum), hn::Mul(set(row_scale), scale), start);
}

// Y = A B + b for R rows and a panel of C vectors of columns, or Y += A B if `accumulate` is set. b: [Y.cols] or null.
template <class Four, int R, int C>
HWY_NOINLINE void int8_tile(const Int8Left& a, int64_t groups, const int32_t* panel, const float* scales,
                            const float* b, bool accumulate, const Matrix<float>& Y) {
  IntVector sum[R][C];
  HWY_UNROLL(8)
  for (int r = 0; r < R; r++) {
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) sum[r][c] = hn::Set(Ints(), a.offsets[r]);
  }
  const int32_t* left = a.fours;
  for (int64_t g = 0; g < groups; g++, left += a.depth_stride, panel += C * lanes()) {
    typename Four::X right[C];
    HWY_UNROLL(8)
    for (int c = 0; c < C; c++) right[c] = Four::of(hn::BitCast(Floats(), hn::LoadU(Ints(), panel + c * lanes())));
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      const IntVector four = hn::Set(Ints(), left[r * a.row_stride]);
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[r][c] = Four::add(right[c], four, sum[r][c]);
    }
  }
  each_vector<C>(Y.cols, [&](int c, auto io) HWY_ATTR {
    const Vector scale = hn::LoadU(Floats(), scales + c * lanes()), start = b ? io.load(b + c * lanes()) : zero();
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      float* y = Y.row(r) + c * lanes();
      io.store(scaled_sum(sum[r][c], a.scales[r], scale, accumulate ? io.load(y) : start), y);
    }
  });
}

template <class Four>
struct ByVectors {
  // Y = A B + b, or Y += A B, in one block of the depth, for the columns of B that begin at `begin`; Y has as many.
  static HWY_INLINE void multiply(const Int8Left& a, const Int8Columns& B, int64_t block, int64_t begin, const float* b,
                                  bool accumulate, Matrix<float> Y) {
    const int64_t groups = B.blocks.groups(block);
    for (int64_t c = 0; c < Y.cols; c += panel_width()) {
      const int64_t end = HWY_MIN(Y.cols, c + panel_width());
      const int32_t* panel = B.block(block) + (begin + c) * groups;
      const float* scales = B.scales + block * B.stride + begin + c;
      for_tiles<kProductRows>(Y.rows, [&](int64_t r, int64_t n) HWY_ATTR {
        with_shape<kProductRows, kProductVectors>(n, width_of_panel(end - c) / lanes(), [&](auto R, auto C) HWY_ATTR {
          int8_tile<Four, R(), C()>(a.from(r), groups, panel, scales, b ? b + c : nullptr, accumulate,
                                    Y.row_range(r, r + n).col_range(c, end));
        });
      });
    }
  }
};

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
