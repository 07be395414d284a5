#include "ops/row_linear.h"

#include <algorithm>
#include <cmath>

#include "core/profile.h"
#include "core/system/isa.h"
#include "core/system/threads.h"
#include "ops/reference/linear_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/linear/row_linear.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/linear/row_linear-inl.h"
#include "ops/cpu/linear/row_linear_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Division of Y = X Wᵀ into blocks of kPanels panels of rows × kSinkColumns columns.
struct RowBlocks {
  static constexpr int64_t kPanels = kSinkRows / kPanelWidth;  // panels per block
  Panels panels;
  int64_t columns;

  int64_t column_blocks() const { return (columns + kSinkColumns - 1) / kSinkColumns; }
  int64_t count() const { return (panels.count() + kPanels - 1) / kPanels * column_blocks(); }
};

// Calls pack(panel, to) for every panel on all threads, then multiplies block by block.
template <class Pack, class Products>
HWY_INLINE void multiply_packed(const RowBlocks& blocks, float* packed, const Pack& pack, const Products& products,
                                BlockSink sink) {
  const Panels& panels = blocks.panels;
  parallel_for(panels.count(), [&](int64_t p) HWY_ATTR { pack(p, packed + panels.offset(p)); });
  parallel_for(blocks.count(), [&](int64_t i) HWY_ATTR {
    const int64_t first = i / blocks.column_blocks() * RowBlocks::kPanels,
                  last = HWY_MIN(panels.count(), first + RowBlocks::kPanels);
    const int64_t begin = i % blocks.column_blocks() * kSinkColumns,
                  end = HWY_MIN(blocks.columns, begin + kSinkColumns);
    const Block at{panels.begin(first), panels.end(last - 1), begin, end};
    const Matrix<float> Y = sink.place(at);
    multiply_panels(products, panels, packed, first, last, begin, end, Y);
    sink.after(at, Y);
  });
}

constexpr int64_t kFewRows = 4;  // up to this many rows, X is not packed

// Multiplies up to kFewRows rows by blocks of columns: multiply(R, begin, end, Y) with a constant R. The speed of
// memory limits this case; it is highest when every thread reads one contiguous run of weights.
template <class Multiply>
HWY_INLINE void multiply_few_rows(int64_t rows, int64_t columns, BlockSink sink, const Multiply& multiply) {
  const int64_t blocks = (columns + kSinkColumns - 1) / kSinkColumns, runs = threads();
  parallel_for(runs, [&](int64_t run) HWY_ATTR {
    for (int64_t i = blocks * run / runs; i < blocks * (run + 1) / runs; i++) {
      const int64_t begin = i * kSinkColumns, end = HWY_MIN(columns, begin + kSinkColumns);
      const Block at{0, rows, begin, end};
      const Matrix<float> Y = sink.place(at);
      with_shape<kFewRows, 1>(rows, 1, [&](auto R, auto) HWY_ATTR { multiply(R, begin, end, Y); });
      sink.after(at, Y);
    }
  });
}

void RowLinear(Matrix<const float> X, Matrix<const float> W, const float* b, BlockSink sink, Arena& scratch) {
  if (X.rows <= kFewRows)
    return multiply_few_rows(X.rows, W.rows, sink, [&](auto R, int64_t begin, int64_t end, Matrix<float> Y) HWY_ATTR {
      multiply_few<R()>(X, W, b, begin, end, Y);
    });
  const RowBlocks blocks{{X.rows, X.cols}, W.rows};
  const Panels& panels = blocks.panels;
  float* packed = scratch.take<float>(panels.vectors() * lanes() * panels.depth);
  const auto pack = [&](int64_t p, float* to) HWY_ATTR {
    transpose(X.row_range(panels.begin(p), panels.end(p)), Matrix<float>(to, X.cols, panels.width(p)));
  };
  multiply_packed(blocks, packed, pack, FloatProducts{W, b}, sink);
}

// Assigns bytes_i = round(x_i / s) + 128 and returns s, which is NaN if some x_i is NaN or infinite.
HWY_INLINE float to_bytes(const float* x, int64_t cols, uint8_t* bytes) {
  Vector largest = zero(), nothing = zero();
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    const Vector x_c = io.load(x + c);
    largest = hn::Max(largest, hn::Abs(x_c));
    nothing = hn::MulAdd(x_c, zero(), nothing);
  });
  const float most = max_of_lanes(largest);
  const Vector inverse = set(most > kLeastScaled ? 127 / most : 0);
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    const hn::Rebind<uint8_t, Floats> d8;
    const auto rounded = hn::Add(hn::NearestInt(hn::Mul(io.load(x + c), inverse)), hn::Set(Ints(), 128));
    hn::StoreU(hn::DemoteTo(d8, rounded), d8, bytes + c);
  });
  return most / 127 + sum_of_lanes(nothing);
}

// Rows of X in 8 bits, row-major.
struct Bytes {
  int64_t stride;
  uint8_t* data;
  float* scales;

  Bytes(int64_t rows, int64_t cols, Arena& scratch)
      : stride(cols + 16),  // a vector stored at the last column fits
        data(scratch.take<uint8_t>(rows * stride)),
        scales(scratch.take<float>(rows)) {}
  HWY_INLINE void set_row(int64_t n, Matrix<const float> X) const {
    scales[n] = n < X.rows ? to_bytes(X.row(n), X.cols, data + n * stride) : 0;
  }
};

template <class Four>
HWY_INLINE void RowLinearFew(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink,
                             Arena& scratch) {
  const Bytes bytes(kFewRows, X.cols, scratch);
  for (int64_t n = 0; n < X.rows; n++) bytes.set_row(n, X);
  multiply_few_rows(X.rows, W.values.rows, sink, [&](auto R, int64_t begin, int64_t end, Matrix<float> Y) HWY_ATTR {
    multiply_few<Four, R()>(W, b, bytes.data, bytes.stride, bytes.scales, begin, end, Y);
  });
}

template <class Products>
HWY_INLINE void RowLinearMany(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink,
                              Arena& scratch) {
  const RowBlocks blocks{{X.rows, X.cols / 4}, W.values.rows};
  const Panels& panels = blocks.panels;
  const int64_t rows = panels.vectors() * lanes();
  float* packed = scratch.take<float>(rows * panels.depth + Products::kReadBeyond);
  const Bytes bytes(rows, X.cols, scratch);
  const auto pack = [&](int64_t p, float* to) HWY_ATTR {
    for (int64_t n = panels.begin(p); n < panels.begin(p + 1); n++) bytes.set_row(n, X);
    const Matrix<const float> fours(reinterpret_cast<const float*>(bytes.data), X.rows, panels.depth, bytes.stride / 4);
    transpose(fours.row_range(panels.begin(p), panels.end(p)), Matrix<float>(to, panels.depth, panels.width(p)));
  };
  multiply_packed(blocks, packed, pack, Products{W, b, bytes.scales}, sink);
}

template <class Products>
HWY_INLINE void RowLinearBytes(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink,
                               Arena& scratch) {
  if (X.rows <= kFewRows) return RowLinearFew<typename Products::Four>(X, W, b, sink, scratch);
  RowLinearMany<Products>(X, W, b, sink, scratch);
}

void RowLinearInt8(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink, Arena& scratch) {
#if HWY_TARGET == HWY_AVX3
  if (has_amx()) return RowLinearBytes<ByteTileProducts>(X, W, b, sink, scratch);
  if (has_vnni()) return RowLinearBytes<ByteProducts<FourBytesVnni>>(X, W, b, sink, scratch);
#endif
  RowLinearBytes<ByteProducts<FourBytes>>(X, W, b, sink, scratch);
}

void SumRows(Matrix<const int8_t> W, int32_t* sums) {
  const hn::Rebind<int8_t, Floats> d8;
  for (int64_t o = 0; o < W.rows; o++) {
    IntVector sum = hn::Zero(Ints());
    int64_t i = 0;
    for (; i + lanes() <= W.cols; i += lanes()) sum = hn::Add(sum, hn::PromoteTo(Ints(), hn::LoadU(d8, W.row(o) + i)));
    sums[o] = hn::GetLane(hn::SumOfLanes(Ints(), sum));
    for (; i < W.cols; i++) sums[o] += W(o, i);
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(RowLinear);
HWY_EXPORT(RowLinearInt8);
HWY_EXPORT(SumRows);

namespace {

Work product_work(int64_t M, int64_t K, int64_t N, double weight_bytes) {
  const double m = static_cast<double>(M), k = static_cast<double>(K), n = static_cast<double>(N);
  return {2 * m * k * n, 4 * m * (k + n) + weight_bytes * k * n};
}

}  // namespace

void quantize_rows(Matrix<const float> W, int8_t* values, float* scale) {
  for (int64_t o = 0; o < W.rows; o++, values += W.cols) {
    float most = 0;
    for (int64_t i = 0; i < W.cols; i++) most = std::max(most, std::abs(W(o, i)));
    scale[o] = most / 127;
    const float inverse = most > kLeastScaled ? 127 / most : 0;
    for (int64_t i = 0; i < W.cols; i++) values[i] = static_cast<int8_t>(std::nearbyint(W(o, i) * inverse));
  }
}

void sum_rows(Matrix<const int8_t> W, int32_t* sums) {
  const auto sum = QKV_DISPATCH(SumRows);
  parallel_blocks(W.rows, 64, [&](int64_t begin, int64_t end) { sum(W.row_range(begin, end), sums + begin); });
}

void row_linear_blocks(Matrix<const float> X, Matrix<const float> W, const float* b, BlockSink sink, Arena& scratch) {
  if (X.rows == 0) return;
  const ProfiledOp profiled("row linear", {X.rows, X.cols, W.rows}, product_work(X.rows, X.cols, W.rows, 4));
  const Arena::Scope scope(scratch);
  QKV_DISPATCH(RowLinear)(X, W, b, sink, scratch);
}

void row_linear_blocks(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink, Arena& scratch) {
  if (X.rows == 0) return;
  const int64_t out = W.values.rows;
  const ProfiledOp profiled("row linear, int8", {X.rows, X.cols, out}, product_work(X.rows, X.cols, out, 1));
  const Arena::Scope scope(scratch);
  QKV_DISPATCH(RowLinearInt8)(X, W, b, sink, scratch);
}

namespace {

template <class Weights>
void into(Matrix<float> Y, const Epilogue<float>& epilogue, Matrix<const float> X, const Weights& W, const float* b,
          Arena& scratch) {
  const auto place = [&](const Block& at) { return Y.block(at); };
  const auto done = [&](const Block& at, Matrix<float>) { epilogue.apply(Y, at); };
  row_linear_blocks(X, W, b, {place, done}, scratch);
}

}  // namespace

template <>
void row_linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& scratch,
                const Epilogue<float>& epilogue) {
  into(Y, epilogue, X, W, b, scratch);
}

void row_linear(Matrix<const float> X, const Int8Matrix& W, const float* b, Matrix<float> Y, Arena& scratch,
                const Epilogue<float>& epilogue) {
  into(Y, epilogue, X, W, b, scratch);
}

void row_products(Matrix<const float> X, Matrix<const float> W, float* y, Arena& scratch) {
  constexpr int64_t kRows = 16;  // whose products with each other are computed at once
  for (int64_t begin = 0; begin < X.rows; begin += kRows) {
    const Arena::Scope scope(scratch);
    const int64_t end = std::min(X.rows, begin + kRows);
    const Matrix<float> Y = scratch.matrix<float>(end - begin, end - begin);
    row_linear<float>(X.row_range(begin, end), W.row_range(begin, end), nullptr, Y, scratch);
    for (int64_t n = 0; n < Y.rows; n++) y[begin + n] = Y(n, n);
  }
}

template <>
void row_linear(Matrix<const double> X, Matrix<const double> W, const double* b, Matrix<double> Y, Arena&,
                const Epilogue<double>& epilogue) {
  reference::linear(X, W, b, Y);
  epilogue.apply(Y, Y.whole());
}

}  // namespace qkv
#endif
