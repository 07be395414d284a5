// Matrix products by register tiles, over many rows: Y = X B and C = Aᵀ X. X, Y and A are read and written in place. B,
// which is used for every row, is packed once. Sums run over the depth in order.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_PRODUCT_INL_H_
#undef QKV_OPS_PRODUCT_INL_H_
#else
#define QKV_OPS_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include "ops/cpu/simd/tile-inl.h"
#include "ops/cpu/simd/transpose-inl.h"
#include "qkv/matrix.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

constexpr int kProductRows = 6;  // rows of a register tile
constexpr int kProductVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;
constexpr int64_t kDepthBlock = 256;  // rows of B, or of A and X, that stay in the second-level cache

// Division of columns into panels of whole vectors, as equal in width as possible.
struct ColumnPanels {
  int64_t cols;

  HWY_INLINE int64_t vectors() const { return (cols + lanes() - 1) / lanes(); }
  HWY_INLINE int64_t count() const { return (vectors() + kProductVectors - 1) / kProductVectors; }
  HWY_INLINE int64_t begin(int64_t panel) const { return vectors() * panel / count() * lanes(); }
  HWY_INLINE int64_t end(int64_t panel) const { return HWY_MIN(cols, begin(panel + 1)); }
  HWY_INLINE int64_t width(int64_t panel) const { return begin(panel + 1) - begin(panel); }
};

// Returns the panel that begins at column `begin` of packed B, which has `depth` rows. A panel is [depth, width]; the
// lanes that pad its last vector hold arbitrary numbers.
HWY_INLINE float* panel_of(float* packed, int64_t depth, int64_t begin) { return packed + begin * depth; }

// Packs one panel of B = Wᵀ.
HWY_INLINE void pack_transposed_panel(Matrix<const float> W, int64_t panel, float* packed) {
  const ColumnPanels panels{W.rows};
  const int64_t begin = panels.begin(panel), width = panels.width(panel);
  transpose(W.row_range(begin, panels.end(panel)), {panel_of(packed, W.cols, begin), W.cols, width, width});
}

// Packs one panel of B = W.
HWY_INLINE void pack_panel(Matrix<const float> W, int64_t panel, float* packed) {
  const ColumnPanels panels{W.cols};
  const int64_t begin = panels.begin(panel), width = panels.width(panel);
  float* to = panel_of(packed, W.rows, begin);
  for (int64_t k = 0; k < W.rows; k++, to += width)
    for_columns(panels.end(panel) - begin,
                [&](int64_t c, auto io) HWY_ATTR { hn::Store(io.load(W.row(k) + begin + c), Floats(), to + c); });
}

// Calls f(c, io) for each of the C vectors that hold `cols` columns; only the last may be partial.
template <int C, class F>
HWY_INLINE void each_vector(int64_t cols, const F& f) {
  HWY_UNROLL(8)
  for (int c = 0; c + 1 < C; c++) f(c, WholeVector());
  if (cols == C * lanes())
    f(C - 1, WholeVector());
  else
    f(C - 1, PartOfVector(cols - (C - 1) * lanes()));
}

// Y = X B + b for R rows and one panel of B, or Y += X B if `accumulate` is set. b: [Y.cols] or null.
template <int R, int C>
HWY_NOINLINE void product_tile(const Matrix<const float>& X, const float* panel, const float* b, bool accumulate,
                               const Matrix<float>& Y) {
  Vector sum[R][C];
  each_vector<C>(Y.cols, [&](int c, auto io) HWY_ATTR {
    const Vector start = b ? io.load(b + c * lanes()) : zero();
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) sum[r][c] = accumulate ? io.load(Y.row(r) + c * lanes()) : start;
  });
  multiply(X.data, X.stride, 1, panel, C * lanes(), X.cols, sum);
  each_vector<C>(Y.cols, [&](int c, auto io) HWY_ATTR {
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) io.store(sum[r][c], Y.row(r) + c * lanes());
  });
}

// Y = X B + b, or Y += X B if `accumulate` is set. packed: B in panels.
HWY_INLINE void multiply_rows(Matrix<const float> X, const float* packed, const float* b, bool accumulate,
                              Matrix<float> Y) {
  const ColumnPanels panels{Y.cols};
  const int64_t depth = X.cols;
  for (int64_t k = 0; k < depth || k == 0; k += kDepthBlock) {
    const Matrix<const float> x = X.col_range(k, HWY_MIN(depth, k + kDepthBlock));
    for (int64_t p = 0; p < panels.count(); p++) {
      const int64_t begin = panels.begin(p), width = panels.width(p);
      const float* panel = packed + begin * depth + k * width;
      const Matrix<float> y = Y.col_range(begin, panels.end(p));
      for_tiles<kProductRows>(Y.rows, [&](int64_t r, int64_t n) HWY_ATTR {
        with_shape<kProductRows, kProductVectors>(n, width / lanes(), [&](auto R, auto C) HWY_ATTR {
          product_tile<R(), C()>(x.row_range(r, r + n), panel, b ? b + begin : nullptr, accumulate || k > 0,
                                 y.row_range(r, r + n));
        });
      });
    }
  }
}

// R rows of C += Aᵀ X for one panel of columns. a: R columns of A.
template <int R, int C, class Io>
HWY_NOINLINE void outer_tile(const Matrix<const float>& a, const Matrix<const float>& x, Io last,
                             const Matrix<float>& to) {
  Vector sum[R][C];
  const auto each = [&](const auto& f) HWY_ATTR {
    HWY_UNROLL(8)
    for (int c = 0; c + 1 < C; c++) f(c, WholeVector());
    f(C - 1, last);
  };
  each([&](int c, auto io) HWY_ATTR {
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) sum[r][c] = io.load(to.row(r) + c * lanes());
  });
  multiply(a.data, 1, a.stride, x.data, x.stride, x.rows, sum, last);
  each([&](int c, auto io) HWY_ATTR {
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) io.store(sum[r][c], to.row(r) + c * lanes());
  });
}

// C += Aᵀ X for a few hundred rows of A and X.
HWY_INLINE void add_outer_products(Matrix<const float> A, Matrix<const float> X, Matrix<float> C) {
  const ColumnPanels panels{X.cols};
  for (int64_t p = 0; p < panels.count(); p++) {
    const int64_t begin = panels.begin(p), end = panels.end(p), vectors = panels.width(p) / lanes();
    for_tiles<kProductRows>(A.cols, [&](int64_t o, int64_t n) HWY_ATTR {
      with_shape<kProductRows, kProductVectors>(n, vectors, [&](auto R, auto V) HWY_ATTR {
        const Matrix<const float> a = A.col_range(o, o + n), x = X.col_range(begin, end);
        const Matrix<float> to = C.row_range(o, o + n).col_range(begin, end);
        if (end - begin == V() * lanes())
          outer_tile<R(), V()>(a, x, WholeVector(), to);
        else
          outer_tile<R(), V()>(a, x, PartOfVector(end - begin - (V() - 1) * lanes()), to);
      });
    });
  }
}

// sums[c] += Σ_n x(n, c)
HWY_INLINE void add_sums(Matrix<const float> x, float* sums) {
  constexpr float kOne = 1;
  add_outer_products({&kOne, x.rows, 1, 0}, x, {sums, 1, x.cols});
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
