// Matrix products in which the rows do not depend on each other. For many rows, rows of X are packed side by side, one
// per lane, and weights are broadcast from where they are stored. For few rows, the lanes are outputs. Float sums run
// over the depth in the same order in both cases.
// Included once for each instruction set, hence the unusual include guard.
#if defined(QKV_OPS_ROW_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_OPS_ROW_LINEAR_INL_H_
#undef QKV_OPS_ROW_LINEAR_INL_H_
#else
#define QKV_OPS_ROW_LINEAR_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "core/arena.h"
#include "ops/cpu/linear/four_bytes-inl.h"
#include "ops/cpu/simd/tile-inl.h"
#include "ops/cpu/simd/transpose-inl.h"
#include "ops/row_linear.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

constexpr int kPanelVectors = 3;                                                    // vectors of rows of X in a panel
constexpr int kOutputs = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 8 : 4;  // outputs of a tile in vectors
constexpr int64_t kOutputGroup = 16;                                                // outputs that are stored together
constexpr int64_t kPanelWidth = kPanelVectors * 16;
constexpr int64_t kPage = 4096;  // bytes; the hardware prefetcher does not cross this boundary

// Division of the rows of X into panels of whole vectors, as equal in width as possible. A panel holds [depth, width]
// elements of 32 bits.
struct Panels {
  int64_t rows, depth;

  HWY_INLINE int64_t vectors() const { return (rows + lanes() - 1) / lanes(); }
  HWY_INLINE int64_t count() const { return (vectors() + kPanelVectors - 1) / kPanelVectors; }
  HWY_INLINE int64_t begin(int64_t panel) const { return vectors() * panel / count() * lanes(); }  // a row
  HWY_INLINE int64_t end(int64_t panel) const { return HWY_MIN(rows, begin(panel + 1)); }
  HWY_INLINE int64_t width(int64_t panel) const { return begin(panel + 1) - begin(panel); }
  HWY_INLINE int64_t offset(int64_t panel) const { return begin(panel) * depth; }
};

// Memory to prefetch. Each step of a tile prefetches a few cache lines; prefetching many at once would delay the loads
// of the tile itself.
struct Ahead {
  const char* weights;
  int64_t lines;            // cache lines of weights per step
  Matrix<float> results{};  // one row per step

  static constexpr int64_t kDepthStep = 4;
  HWY_INLINE void fetch() {
    for (int64_t i = 0; i < lines; i++, weights += 64) __builtin_prefetch(weights, 0, 2);
    if (results.rows == 0) return;
    __builtin_prefetch(results.data, 1);
    results = results.row_range(1, results.rows);
  }
};

// Returns the weights of the group of outputs that begins at `output`, to be prefetched while the tiles of the group
// before are computed.
template <int kTileOutputs = kOutputs, class T>
HWY_INLINE Ahead weights_ahead(Matrix<const T> W, int64_t output, int64_t depth, int64_t panels) {
  if (output + kOutputGroup > W.rows) return {nullptr, 0};
  const int64_t lines = kOutputGroup * W.stride * static_cast<int64_t>(sizeof(T)) / 64;
  const int64_t steps = kOutputGroup / kTileOutputs * panels * ((depth + Ahead::kDepthStep - 1) / Ahead::kDepthStep);
  return {reinterpret_cast<const char*>(W.row(output)), (lines + steps - 1) / steps};
}

// Products with float32 weights. A tile is R outputs × C vectors of rows of X.
struct FloatProducts {
  static constexpr int kTileOutputs = kOutputs;
  struct Setup {};  // of a thread

  Matrix<const float> W;
  const float* b;  // may be null

  HWY_INLINE Ahead after(int64_t output, int64_t depth, int64_t panels) const {
    return weights_ahead(W, output, depth, panels);
  }

  template <int R, int C>
  HWY_INLINE void tile(int64_t output, const float* x, int64_t width, int64_t depth, int64_t, Ahead& ahead,
                       float* to) const {
    Vector sum[R][C];
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[r][c] = set(b ? b[output + r] : 0.0f);
    }
    const float* w = W.row(output);
    int64_t e = 0;
    for (; e + Ahead::kDepthStep <= depth; e += Ahead::kDepthStep) {
      ahead.fetch();
      multiply(w + e, W.stride, 1, x + e * width, width, Ahead::kDepthStep, sum);
    }
    multiply(w + e, W.stride, 1, x + e * width, width, depth - e, sum);
    store_tile(sum, to, kPanelWidth);
  }
};

// Products with 8-bit weights and inputs. `depth` counts groups of four.
template <class FourBytesOfSet>
struct ByteProducts {
  using Four = FourBytesOfSet;
  static constexpr int kTileOutputs = kOutputs;
  static constexpr int64_t kReadBeyond = 0;  // elements after the last panel that are read
  struct Setup {};

  Int8Matrix W;
  const float* b;       // may be null
  const float* scales;  // one scale per row of X

  HWY_INLINE Ahead after(int64_t output, int64_t depth, int64_t panels) const {
    return weights_ahead(W.values, output, depth, panels);
  }

  template <int R, int C>
  HWY_INLINE void tile(int64_t output, const float* x, int64_t width, int64_t depth, int64_t row, Ahead& ahead,
                       float* to) const {
    IntVector sum[R][C];
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) sum[r][c] = hn::Set(Ints(), -128 * W.sums[output + r]);
    }
    const int8_t* w = W.values.row(output);
    for (int64_t g = 0; g < depth; g++, x += width, w += 4) {
      if (g % Ahead::kDepthStep == 0) ahead.fetch();
      typename Four::X fours[C];
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) fours[c] = Four::of(hn::LoadU(Floats(), x + c * lanes()));
      HWY_UNROLL(8)
      for (int r = 0; r < R; r++) {
        int32_t weights;
        std::memcpy(&weights, w + r * W.values.stride, 4);
        HWY_UNROLL(8)
        for (int c = 0; c < C; c++) sum[r][c] = Four::add(fours[c], hn::Set(Ints(), weights), sum[r][c]);
      }
    }
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) {
      HWY_UNROLL(8)
      for (int c = 0; c < C; c++) finish(output + r, row + c * lanes(), sum[r][c], to + r * kPanelWidth + c * lanes());
    }
  }

  // Assigns a vector of one output, of the rows that begin at `row`.
  HWY_INLINE void finish(int64_t output, int64_t row, IntVector sum, float* to) const {
    const Vector scale = hn::Mul(hn::LoadU(Floats(), scales + row), set(W.scale[output]));
    hn::Store(hn::MulAdd(hn::ConvertTo(Floats(), sum), scale, set(b ? b[output] : 0.0f)), Floats(), to);
  }
};

// y(n, o) = x(o, n) for `outputs` rows of x, at most kOutputGroup.
HWY_INLINE void store_transposed(const float* x, int64_t outputs, Matrix<float> y) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t o = 0; o < outputs; o++) y(n, o) = x[o * kPanelWidth + n];
#else
  for_columns(outputs, [&](int64_t o, auto io) HWY_ATTR {
    const float* rows[16];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = x + (o + i) * kPanelWidth;
    for (int64_t n = 0; n < y.rows; n += 4) {
      Vector x0 = load_blocks(rows, n), x1 = load_blocks(rows + 1, n);
      Vector x2 = load_blocks(rows + 2, n), x3 = load_blocks(rows + 3, n);
      transpose_blocks(x0, x1, x2, x3);
      io.store(x0, y.row(n) + o);
      if (n + 1 < y.rows) io.store(x1, y.row(n + 1) + o);
      if (n + 2 < y.rows) io.store(x2, y.row(n + 2) + o);
      if (n + 3 < y.rows) io.store(x3, y.row(n + 3) + o);
    }
  });
#endif
}

// Assigns Y = columns [begin, end) of the product for the rows of panels [first, last). The weights of a group of
// outputs stay in the first-level cache.
template <class Products>
HWY_INLINE void multiply_panels(const Products& products, const Panels& panels, const float* packed, int64_t first,
                                int64_t last, int64_t begin, int64_t end, Matrix<float> Y) {
  constexpr int kTileOutputs = Products::kTileOutputs;
  [[maybe_unused]] const typename Products::Setup setup;
  alignas(64) float tile[kOutputGroup * kPanelWidth];
  const int64_t top = panels.begin(first);
  for (int64_t o = begin; o < end; o += kOutputGroup) {
    const int64_t outputs = HWY_MIN(kOutputGroup, end - o);
    Ahead ahead = products.after(o + kOutputGroup, panels.depth, last - first);
    for (int64_t p = first; p < last; p++) {
      const int64_t row = panels.begin(p), width = panels.width(p);
      const float* x = packed + panels.offset(p);
      const Matrix<float> y = Y.row_range(row - top, panels.end(p) - top).col_range(o - begin, Y.cols);
      ahead.results = y;
      with_shape<1, kPanelVectors>(1, width / lanes(), [&](auto, auto C) HWY_ATTR {
        int64_t r = 0;
        for (; r + kTileOutputs <= outputs; r += kTileOutputs)
          products.template tile<kTileOutputs, C()>(o + r, x, width, panels.depth, row, ahead, tile + r * kPanelWidth);
        for (; r < outputs; r++)
          products.template tile<1, C()>(o + r, x, width, panels.depth, row, ahead, tile + r * kPanelWidth);
      });
      store_transposed(tile, outputs, y);
    }
  }
}

// Assigns Y = columns [begin, end) of the product for R rows of X; neither X nor W is packed. Computes one vector of
// outputs at a time, with the sums in the same order as multiply_panels. Prefetches the weights of the next vector.
template <int R>
HWY_INLINE void multiply_few(Matrix<const float> X, Matrix<const float> W, const float* b, int64_t begin, int64_t end,
                             Matrix<float> Y) {
  for_columns(end - begin, [&](int64_t c, auto io) HWY_ATTR {
    const int64_t o = begin + c;
    const float* rows[16];
    for (int64_t i = 0; i < lanes(); i++) rows[i] = W.row(HWY_MIN(o + i, end - 1));
    Vector sum[R];
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) sum[r] = b ? io.load(b + o) : zero();
    const char* next = reinterpret_cast<const char*>(rows[0] + lanes() * W.stride);
    for_columns_of(rows, W.cols, [&](int64_t i, Vector w) HWY_ATTR {
      if (i % 4 == 0)
        for (int64_t line = 0; line < lanes() / 4; line++, next += 64) __builtin_prefetch(next, 0, 2);
      HWY_UNROLL(8)
      for (int r = 0; r < R; r++) sum[r] = hn::MulAdd(set(X(r, i)), w, sum[r]);
    });
    HWY_UNROLL(8)
    for (int r = 0; r < R; r++) io.store(sum[r], Y.row(r) + c);
  });
}

// Assigns Y = columns [begin, end) of the product for R rows of X; bytes: [R, stride]. Integer sums are exact, so they
// equal those of multiply_panels.
template <class Four, int R>
HWY_INLINE void multiply_few(const Int8Matrix& W, const float* b, const uint8_t* bytes, int64_t stride,
                             const float* scales, int64_t begin, int64_t end, Matrix<float> Y) {
  const auto as_floats = [](const void* p) { return static_cast<const float*>(p); };
  for (int64_t o = begin; o < end; o += lanes()) {
    alignas(64) int32_t sums[R][16];
    for (int64_t i = 0; i < HWY_MIN(lanes(), end - o); i++) {
      IntVector sum[R];
      HWY_UNROLL(8)
      for (int r = 0; r < R; r++) sum[r] = hn::Zero(Ints());
      for_columns(W.values.cols / 4, [&](int64_t c, auto io) HWY_ATTR {
        const int8_t* weights = W.values.row(o + i) + 4 * c;
        __builtin_prefetch(weights + kPage);
        const IntVector w = hn::BitCast(Ints(), io.load(as_floats(weights)));
        HWY_UNROLL(8)
        for (int r = 0; r < R; r++)
          sum[r] = Four::add(Four::of(io.load(as_floats(bytes + r * stride + 4 * c))), w, sum[r]);
      });
      HWY_UNROLL(8)
      for (int r = 0; r < R; r++) sums[r][i] = hn::GetLane(hn::SumOfLanes(Ints(), sum[r])) - 128 * W.sums[o + i];
    }
    for_columns(HWY_MIN(lanes(), end - o), [&](int64_t, auto io) HWY_ATTR {
      const Vector scale = io.load(W.scale + o), bias = b ? io.load(b + o) : zero();
      for (int r = 0; r < R; r++) {
        const Vector sum = hn::ConvertTo(Floats(), hn::Load(Ints(), sums[r]));
        io.store(hn::MulAdd(sum, hn::Mul(set(scales[r]), scale), bias), Y.row(r) + o - begin);
      }
    });
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
