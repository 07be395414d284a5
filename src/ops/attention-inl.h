// What the forward and backward kernels of attention share: panels of keys, register tiles and their products.
// Included once for every instruction set, hence the unusual guard.
#if defined(QKV_OPS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ATTENTION_INL_H_
#undef QKV_OPS_ATTENTION_INL_H_
#else
#define QKV_OPS_ATTENTION_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "ops/attention_scratch.h"
#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

constexpr float kLog2e = 1.44269504f;
// A tile is kTileRows × this many vectors: 24 sums in 32 registers, or 12 in 16.
constexpr int64_t kTileVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;

// 2^x, relative error 1.7e-7; exactly 0 below −127; x is cut at 127; NaN stays NaN. Adding 1.5 · 2^23 + 127 rounds x to
// an integer n and leaves n + 127, the exponent of 2^n, in the low bits.
HWY_INLINE Vector exp2(Vector x) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  x = hn::Max(set(-127.0f), hn::Min(set(127.0f), x));
  const Vector shifted = hn::Add(x, set(12583039.0f));
  const Vector power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const Vector r = hn::Sub(x, hn::Sub(shifted, set(12583039.0f)));
  Vector p = set(1.326466561e-03f);
  p = hn::MulAdd(p, r, set(9.671512991e-03f));
  p = hn::MulAdd(p, r, set(5.550733954e-02f));
  p = hn::MulAdd(p, r, set(2.402224243e-01f));
  p = hn::MulAdd(p, r, set(6.931470037e-01f));
  p = hn::MulAdd(p, r, set(1.0f));
  return hn::Mul(p, power);
}

// Calls f(first, count) for tiles of at most kTileRows rows, as equal as can be.
template <class F>
HWY_INLINE void for_tiles(int64_t rows, const F& f) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t t = 0; t < tiles; t++) f(rows * t / tiles, rows * (t + 1) / tiles - rows * t / tiles);
}

// Calls Op::run<rows, vectors>(tile) with both as constants.
template <class Op, int R = kTileRows, int C = kTileVectors, class Tile>
HWY_INLINE void run_tile(int64_t rows, int64_t vectors, const Tile& tile) {
  if constexpr (R > 1)
    if (rows < R) return run_tile<Op, R - 1, C>(rows, vectors, tile);
  if constexpr (C > 1)
    if (vectors < C) return run_tile<Op, R, C - 1>(rows, vectors, tile);
  Op::template run<R, C>(tile);
}

// c_rj = Σ_e a_re b_ej, e < depth: scores of a tile of queries and a panel of keys. Rows of b and c are kKeys apart.
struct ScoreTile {
  const float* a;
  int64_t a_stride, depth;
  const float* b;
  float* c;
};

struct Multiply {
  template <int R, int C>
  static HWY_NOINLINE void run(const ScoreTile& t) {
    const float *HWY_RESTRICT a = t.a, *HWY_RESTRICT b = t.b;
    const int64_t a_stride = t.a_stride, depth = t.depth;
    Vector sum[R][C];
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[r][c] = zero();
    }
    for (int64_t e = 0; e < depth; e++, b += kKeys) {
      Vector x[C];
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) x[c] = hn::Load(Floats(), b + c * lanes());
      HWY_UNROLL(8)
      for (int r = 0; r < R; r++) {
        const Vector y = set(a[r * a_stride + e]);
        HWY_UNROLL(8)
        for (int c = 0; c < C; c++) sum[r][c] = hn::MulAdd(y, x[c], sum[r][c]);
      }
    }
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) hn::Store(sum[r][c], Floats(), t.c + r * kKeys + c * lanes());
    }
  }
};

// The same over the first `vectors` vectors of keys; at most kTileRows rows of a.
HWY_INLINE void multiply(Matrix<const float> a, const float* panel, int64_t vectors, float* c) {
  for (int64_t v = 0; v < vectors; v += kTileVectors)
    run_tile<Multiply>(a.rows, vectors - v, ScoreTile{a.data, a.stride, a.cols, panel + v * lanes(), c + v * lanes()});
}

// c += A b or c += Aᵀ b, where A lies in memory with rows kKeys apart: a tile of weights, or of their gradients.
struct Product {
  const float* a;
  const float* b;
  int64_t b_stride, depth;
  float* c;
  int64_t c_stride;
};

template <bool kTransposed>
struct AddProduct {
  template <int R, int C>
  static HWY_NOINLINE void run(const Product& t) {
    const float *HWY_RESTRICT a = t.a, *HWY_RESTRICT b = t.b;
    const int64_t b_stride = t.b_stride, depth = t.depth;
    Vector sum[R][C];
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[r][c] = hn::Load(Floats(), t.c + r * t.c_stride + c * lanes());
    }
    for (int64_t k = 0; k < depth; k++, b += b_stride) {
      Vector x[C];
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) x[c] = hn::LoadU(Floats(), b + c * lanes());
      HWY_UNROLL(8)
      for (int r = 0; r < R; r++) {
        const Vector y = set(kTransposed ? a[k * kKeys + r] : a[r * kKeys + k]);
        HWY_UNROLL(8)
        for (int c = 0; c < C; c++) sum[r][c] = hn::MulAdd(y, x[c], sum[r][c]);
      }
    }
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) hn::Store(sum[r][c], Floats(), t.c + r * t.c_stride + c * lanes());
    }
  }
};

// The same over all columns of b; at most kTileRows rows of c.
template <bool kTransposed>
HWY_INLINE void add_product(int64_t rows, const float* a, Matrix<const float> b, int64_t depth, Matrix<float> c) {
  const int64_t vectors = (b.cols + lanes() - 1) / lanes();
  for (int64_t v = 0; v < vectors; v += kTileVectors)
    run_tile<AddProduct<kTransposed>>(
        rows, vectors - v, Product{a, b.data + v * lanes(), b.stride, depth, c.data + v * lanes(), c.stride});
}

#if HWY_TARGET != HWY_SCALAR
// The vector whose blocks of four lanes are at rows[0], rows[4], rows[8], … + offset.
HWY_INLINE Vector load_blocks(const float* const* rows, int64_t offset) {
  const hn::CappedTag<float, 4> d4;
#if HWY_TARGET == HWY_AVX3
  const hn::CappedTag<float, 8> d8;
  const auto low = hn::Combine(d8, hn::LoadU(d4, rows[4] + offset), hn::LoadU(d4, rows[0] + offset));
  const auto high = hn::Combine(d8, hn::LoadU(d4, rows[12] + offset), hn::LoadU(d4, rows[8] + offset));
  return hn::Combine(Floats(), high, low);
#elif HWY_TARGET == HWY_AVX2
  return hn::Combine(Floats(), hn::LoadU(d4, rows[4] + offset), hn::LoadU(d4, rows[0] + offset));
#else
  return hn::LoadU(d4, rows[0] + offset);
#endif
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

// panel_ej = scale · x_je for the rows j of x, at most kKeys; panel: [x.cols, kKeys]. The last row is repeated until a
// vector is full.
HWY_INLINE void pack_transposed(Matrix<const float> x, float scale, float* HWY_RESTRICT panel) {
  [[maybe_unused]] const Floats d;
  for (int64_t j = 0; j < x.rows; j += lanes()) {
    const float* rows[kLanes];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = x.row(HWY_MIN(j + i, x.rows - 1));
    float* to = panel + j;
    int64_t e = 0;
#if HWY_TARGET != HWY_SCALAR
    for (; e + 4 <= x.cols; e += 4, to += 4 * kKeys) {
      Vector x0 = load_blocks(rows, e), x1 = load_blocks(rows + 1, e);
      Vector x2 = load_blocks(rows + 2, e), x3 = load_blocks(rows + 3, e);
      transpose_blocks(x0, x1, x2, x3);
      hn::Store(hn::Mul(set(scale), x0), d, to);
      hn::Store(hn::Mul(set(scale), x1), d, to + kKeys);
      hn::Store(hn::Mul(set(scale), x2), d, to + 2 * kKeys);
      hn::Store(hn::Mul(set(scale), x3), d, to + 3 * kKeys);
    }
#endif
    for (; e < x.cols; e++, to += kKeys)
      for (int64_t i = 0; i < lanes(); i++) to[i] = scale * rows[i][e];
  }
}

// Rows whose last vector may be read whole: x itself, or a copy in `copy` with zeros at the ends. A large stride maps
// rows to few cache sets, so that many rows are worth a copy too.
HWY_INLINE Matrix<const float> whole_vectors(Matrix<const float> x, int64_t uses, float* copy) {
  if (x.cols % lanes() == 0 && uses <= kKeys) return x;
  const Matrix<float> y(copy, x.rows, x.cols, padded(x.cols));
  for (int64_t i = 0; i < x.rows; i++)
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR { hn::Store(io.load(x.row(i) + c), Floats(), y.row(i) + c); });
  return y;
}

// Asks for the rows of a short sequence before they are needed: they lie apart in memory, which the processor does not
// foresee, and hundreds of short sequences are bound by that.
template <class Real>
HWY_INLINE void prefetch(Heads<Real> x, int64_t token, int64_t h, int64_t rows, int64_t width) {
  if (rows > kKeys) return;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t e = 0; e < width; e += kLanes) hwy::Prefetch(x.at(token + i, h) + e);
}

// One sequence and head.
struct Pair {
  const AttentionInput<float>& in;
  int64_t s, h;
  reference::Span at;

  Pair(const AttentionInput<float>& input, int64_t sequence, int64_t head)
      : in(input), s(sequence), h(head), at(reference::span(input.sequences, sequence)) {}
  Matrix<const float> q() const { return {in.q.at(at.q0, h), at.T, in.key_width, in.q.token_stride}; }
  Matrix<const float> k() const { return {in.k.at(at.k0, h), at.S, in.key_width, in.k.token_stride}; }
  Matrix<const float> v() const { return {in.v.at(at.k0, h), at.S, in.value_width, in.v.token_stride}; }
  int64_t visible(int64_t i) const { return reference::visible_keys(at, in.causal, i); }
  float scale2() const { return in.scale * kLog2e; }
  Dropout dropout() const {
    const Dropout& drop = in.dropout;
    return {drop.p, drop.seed, drop.step, drop.site + static_cast<uint32_t>(h)};
  }
  // m(s, h, i, j) and on, or null.
  const float* mask(int64_t i, int64_t j) const {
    const AttentionMask<float>& m = in.mask;
    return m.data ? m.data + s * m.sequence_stride + h * m.head_stride + i * m.row_stride + j : nullptr;
  }
};

// Of the next head.
HWY_INLINE void prefetch_keys_and_queries(const Pair& pair) {
  const AttentionInput<float>& in = pair.in;
  prefetch(in.k, pair.at.k0, pair.h + 1, pair.at.S, in.key_width);
  prefetch(in.v, pair.at.k0, pair.h + 1, pair.at.S, in.value_width);
  prefetch(in.q, pair.at.q0, pair.h + 1, pair.at.T, in.key_width);
}

// Queries [i, i + rows) against keys [j, j + keys): the widest that any of them sees, in whole vectors, and what a tile
// has to add and to multiply, or null where there is nothing. factors is null without dropout.
struct TileView {
  int64_t keys, vectors;
  const float *bias = nullptr, *dropout = nullptr;

  HWY_INLINE TileView(const Pair& pair, int64_t i, int64_t rows, int64_t j, int64_t panel_keys, DropoutFactors* factors,
                      const PanelScratch& scratch)
      : keys(HWY_MIN(panel_keys, pair.visible(i + rows - 1) - j)), vectors((keys + lanes() - 1) / lanes()) {
    if (keys <= 0) return;
    if (pair.in.mask.data || pair.visible(i) - j < vectors * lanes()) {
      fill_bias(pair, i, rows, j, scratch.bias);
      bias = scratch.bias;
    }
    if (factors) {
      for (int64_t r = 0; r < rows; r++) {
        factors->draw(pair.at.q0 + i + r, j / 128);
        for (int64_t c = 0; c < vectors * lanes(); c += lanes())
          hn::Store(factors->at(j % 128 + c), Floats(), scratch.dropout + r * kKeys + c);
      }
      dropout = scratch.dropout;
    }
  }

 private:
  // log2 e · m where a query sees a key, else −∞.
  HWY_INLINE void fill_bias(const Pair& pair, int64_t i, int64_t rows, int64_t j, float* to) const {
    for (int64_t r = 0; r < rows; r++) {
      const float* mask = pair.mask(i + r, j);
      for (int64_t c = 0; c < vectors * lanes(); c += lanes()) {
        const int64_t seen = HWY_MAX(int64_t{0}, HWY_MIN(lanes(), pair.visible(i + r) - j - c));
        Vector m = zero();
        if (mask)
          m = hn::Mul(set(kLog2e), seen == lanes() ? WholeVector().load(mask + c) : PartOfVector(seen).load(mask + c));
        const auto first = hn::FirstN(Floats(), static_cast<size_t>(seen));
        hn::Store(hn::IfThenElse(first, m, set(-HUGE_VALF)), Floats(), to + r * kKeys + c);
      }
    }
  }
};

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
