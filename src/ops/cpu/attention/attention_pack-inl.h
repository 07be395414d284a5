// Packing: rows of the caller's arrays are transposed into panels or copied into whole vectors, and results are stored
// with a check whether they are finite.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ATTENTION_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ATTENTION_PACK_INL_H_
#undef QKV_OPS_ATTENTION_PACK_INL_H_
#else
#define QKV_OPS_ATTENTION_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstring>

#include "core/to_size.h"
#include "ops/cpu/attention/attention_workspace.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/cpu/simd/tile-inl.h"
#include "ops/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Returns the number of lanes that hold `entries` entries of a row.
template <class Lane>
HWY_INLINE int64_t lanes_of(int64_t entries) {
  return (entries + Lane::kEntries - 1) / Lane::kEntries;
}

// Returns two bfloat16 in a lane, in their order in memory.
HWY_INLINE float bfloat16_pair(bfloat16 first, bfloat16 second) {
  return std::bit_cast<float>(static_cast<uint32_t>(second.bits) << 16 | first.bits);
}

// panel_ej = scale · x_je for the rows j of x, at most kPanel; panel: [lanes of x.cols, kPanel]. Lanes of bfloat16 hold
// x itself, unscaled. The last row is repeated until a vector is full.
template <class Lane, class T>
HWY_INLINE void pack_transposed(Matrix<const T> x, float scale, float* HWY_RESTRICT panel) {
  [[maybe_unused]] const Floats d;
  for (int64_t j = 0; j < x.rows; j += lanes()) {
    const T* rows[kLanes];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = x.row(HWY_MIN(j + i, x.rows - 1));
    int64_t e = 0;
#if HWY_TARGET != HWY_SCALAR
    const int64_t whole = x.cols / Lane::kEntries;  // lanes
    for (; e < whole && whole >= 4; e += 4) {
      const int64_t first = HWY_MIN(e, whole - 4);  // the last four may overlap those before them
      const auto load = [&](int i) HWY_ATTR {
        if constexpr (Lane::kEntries == 1)
          return hn::Mul(set(scale), load_blocks(rows + i, first));
        else
          return load_blocks<float>(rows + i, 2 * first);
      };
      Vector x0 = load(0), x1 = load(1), x2 = load(2), x3 = load(3);
      transpose_blocks(x0, x1, x2, x3);
      float* to = panel + first * kPanel + j;
      hn::Store(x0, d, to);
      hn::Store(x1, d, to + kPanel);
      hn::Store(x2, d, to + 2 * kPanel);
      hn::Store(x3, d, to + 3 * kPanel);
    }
    e = HWY_MIN(e, whole);
#endif
    for (; e < lanes_of<Lane>(x.cols); e++)
      for (int64_t i = 0; i < lanes(); i++) {
        float& to = panel[e * kPanel + j + i];
        if constexpr (Lane::kEntries == 1)
          to = scale * static_cast<float>(rows[i][e]);
        else
          to = bfloat16_pair(rows[i][2 * e], 2 * e + 1 < x.cols ? rows[i][2 * e + 1] : bfloat16());
      }
  }
}

// Copies rows as floats, with zeros up to the end of the last vector.
template <class T>
HWY_INLINE Matrix<const float> copy_rows(Matrix<const T> x, float* to) {
  const Matrix<float> y(to, x.rows, x.cols, padded(x.cols));
  for (int64_t i = 0; i < x.rows; i++)
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR { hn::Store(io.load(x.row(i) + c), Floats(), y.row(i) + c); });
  return y;
}

// Returns whether the rows can be read in whole vectors in place. With many rows, a copy is faster if their vectors
// cross cache lines, or if they are far apart, because a large stride maps them to few cache sets.
HWY_INLINE bool in_whole_vectors(Matrix<const float> x) {
  const bool aligned =
      (reinterpret_cast<uintptr_t>(x.data) | static_cast<uintptr_t>(x.stride) * sizeof(float)) % 64 == 0;
  return x.cols % lanes() == 0 && (x.rows <= kPanel || (aligned && x.stride <= 2 * x.cols));
}

// Returns the rows in whole vectors: x itself, or the place of a copy that the caller must make.
HWY_INLINE Matrix<const float> rows_or_copy(Matrix<const float> x, float* copy) {
  return in_whole_vectors(x) ? x : Matrix<const float>(copy, x.rows, x.cols, padded(x.cols));
}
HWY_INLINE Matrix<const float> rows_or_copy(Matrix<const bfloat16> x, float* copy) {
  return {copy, x.rows, x.cols, padded(x.cols)};
}
template <class T>
HWY_INLINE Matrix<const float> whole_vectors(Matrix<const T> x, float* copy) {
  const Matrix<const float> rows = rows_or_copy(x, copy);
  return rows.data == copy ? copy_rows(x, copy) : rows;
}

// Returns rows of floats, whose last vector may be partial.
HWY_INLINE Matrix<const float> as_floats(Matrix<const float> x, float*) { return x; }
HWY_INLINE Matrix<const float> as_floats(Matrix<const bfloat16> x, float* copy) { return copy_rows(x, copy); }

// Returns the rows as operands of a product with this Lane.
template <class Lane, class T>
HWY_INLINE Matrix<const float> in_lanes(Matrix<const T> x, float* copy) {
  if constexpr (Lane::kEntries == 1) {
    return as_floats(x, copy);
  } else {
    const Matrix<float> y(copy, x.rows, lanes_of<Lane>(x.cols), padded(lanes_of<Lane>(x.cols)));
    for (int64_t i = 0; i < x.rows; i++) {
      y(i, y.cols - 1) = 0;
      std::memcpy(y.row(i), x.row(i), to_size(x.cols) * sizeof(T));
    }
    return y;
  }
}

// Assigns factor · x to a row. ORs the bits of y − y into `nothing`, which stays 0 if all values are finite.
template <class T>
HWY_INLINE void store_row(const float* x, int64_t cols, float factor, T* to, Vector& nothing) {
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    const Vector y = hn::Mul(set(factor), hn::Load(Floats(), x + c));
    nothing = hn::Or(nothing, io.only(hn::Sub(y, y), zero()));
    io.store(y, to + c);
  });
}

// The same for all rows. Returns whether all values are finite.
template <class T>
HWY_INLINE bool store_rows(Matrix<const float> x, float factor, T* to, int64_t stride) {
  Vector nothing = zero();
  for (int64_t r = 0; r < x.rows; r++) store_row(x.row(r), x.cols, factor, to + r * stride, nothing);
  return sum_of_lanes(nothing) == 0;
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
