#include "ops/int8_linear.h"

#include <algorithm>

#include "core/profile.h"
#include "core/system/isa.h"
#include "core/system/threads.h"
#include "ops/cpu/linear/int8_operands.h"
#include "ops/cpu/linear/result_blocks.h"
#include "ops/cpu/linear/tile_linear.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/linear/int8_linear.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/linear/int8_product-inl.h"
#include "ops/cpu/linear/int8_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void PackLeftColumns(Matrix<const float> M, int64_t block, int64_t begin, int64_t end, const Int8Columns& to) {
  pack_columns<true>(M, block, begin, end, to);
}
void PackColumns(Matrix<const float> M, int64_t block, int64_t begin, int64_t end, const Int8Columns& to) {
  pack_columns<false>(M, block, begin, end, to);
}
void PackTransposedColumns(Matrix<const float> W, int64_t block, int64_t begin, int64_t end, const Int8Columns& to) {
  pack_transposed_columns(W, block, begin, end, to);
}
void QuantizeInt8Rows(Matrix<const float> X, int64_t begin, int64_t end, const Int8Rows& to) {
  for (int64_t n = begin; n < end; n++) quantize_row(X.row(n), n, to);
}

// Y = A B + b, or Y += A B, for a block of Y.
template <class Products>
HWY_INLINE void MultiplyRowsBy(const Int8Rows& A, const Int8Columns& B, const float* b, bool accumulate,
                               const Block& at, Matrix<float> Y) {
  for (int64_t i = 0; i < A.blocks.count(); i++) {
    const auto* fours = reinterpret_cast<const int32_t*>(A.bytes + A.blocks.begin(i));
    const Int8Left left{fours, A.stride / 4, 1, A.scales + i * A.rows, A.offsets + i * A.rows};
    Products::multiply(left.from(at.row_begin), B, i, at.col_begin, i == 0 && b ? b + at.col_begin : nullptr,
                       accumulate || i > 0, Y.block(at));
  }
}

// Y += Aᵀ B for a block of Y.
template <class Products>
HWY_INLINE void MultiplyColumnsBy(const Int8Columns& A, const Int8Columns& B, const Block& at, Matrix<float> Y) {
  for (int64_t i = 0; i < A.blocks.count(); i++)
    for (int64_t r = at.row_begin; r < at.row_end; r += panel_width()) {
      const int64_t end = HWY_MIN(at.row_end, r + panel_width()), width = width_of_panel(end - r);
      const int64_t scales = i * A.stride + r;
      const Int8Left left{A.block(i) + r * A.blocks.groups(i), 1, width, A.scales + scales, A.offsets + scales};
      Products::multiply(left, B, i, at.col_begin, nullptr, true, Y.block({r, end, at.col_begin, at.col_end}));
    }
}

void MultiplyInt8Rows(const Int8Rows& A, const Int8Columns& B, const float* b, bool accumulate, const Block& at,
                      Matrix<float> Y) {
#if HWY_TARGET == HWY_AVX3
  if (has_amx()) return MultiplyRowsBy<ByTiles>(A, B, b, accumulate, at, Y);
  if (has_vnni()) return MultiplyRowsBy<ByVectors<FourBytesVnni>>(A, B, b, accumulate, at, Y);
#endif
  MultiplyRowsBy<ByVectors<FourBytes>>(A, B, b, accumulate, at, Y);
}

void MultiplyInt8Columns(const Int8Columns& A, const Int8Columns& B, const Block& at, Matrix<float> Y) {
#if HWY_TARGET == HWY_AVX3
  if (has_amx()) return MultiplyColumnsBy<ByTiles>(A, B, at, Y);
  if (has_vnni()) return MultiplyColumnsBy<ByVectors<FourBytesVnni>>(A, B, at, Y);
#endif
  MultiplyColumnsBy<ByVectors<FourBytes>>(A, B, at, Y);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(PackLeftColumns);
HWY_EXPORT(PackColumns);
HWY_EXPORT(PackTransposedColumns);
HWY_EXPORT(QuantizeInt8Rows);
HWY_EXPORT(MultiplyInt8Rows);
HWY_EXPORT(MultiplyInt8Columns);

namespace {

Work product_work(int64_t M, int64_t K, int64_t N, int products) {
  const double m = static_cast<double>(M), k = static_cast<double>(K), n = static_cast<double>(N);
  return {2 * products * m * k * n, 4 * (m * k + k * n + m * n)};
}

// Calls f(i) for every i below the count of each part, all in one parallel loop.
struct Part {
  int64_t count;
  FunctionRef<void(int64_t)> f;
};
void run_parts(std::initializer_list<Part> parts) {
  int64_t count = 0;
  for (const Part& part : parts) count += part.count;
  parallel_for(count, [&](int64_t i) {
    for (const Part& part : parts) {
      if (i < part.count) return part.f(i);
      i -= part.count;
    }
  });
}

ResultBlocks blocks_of_rows(int64_t rows, int64_t cols) {
  return {rows, cols, std::clamp<int64_t>((rows + 47) / 48 * 6, 48, 192), 512};
}
// Returns the work of packing M as columns: a panel in a block of the depth is one task.
template <class Pack>
auto packing(Pack pack, Matrix<const float> M, const Int8Columns& to) {
  return [=](int64_t i) {
    const ResultBlocks panels{to.blocks.count(), to.cols, 1, Int8Columns::kWidth};
    const Block at = panels[i];
    pack(M, at.row_begin, at.col_begin, at.col_end, to);
  };
}
int64_t panels_of(const Int8Columns& to) {
  return to.blocks.count() * ((to.cols + Int8Columns::kWidth - 1) / Int8Columns::kWidth);
}

constexpr int64_t kRun = 16;  // rows that a task quantizes
auto quantizing(Matrix<const float> X, const Int8Rows& to) {
  return [=](int64_t i) { QKV_DISPATCH(QuantizeInt8Rows)(X, i * kRun, std::min(X.rows, (i + 1) * kRun), to); };
}
int64_t runs_of(const Int8Rows& to) { return (to.rows + kRun - 1) / kRun; }

}  // namespace

void int8_linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& arena,
                 const Epilogue<float>& epilogue) {
  const ProfiledOp profiled("linear, int8", {X.rows, X.cols, W.rows}, product_work(X.rows, X.cols, W.rows, 1));
  const Arena::Scope scope(arena);
  const Int8Rows x(X.rows, X.cols, arena);
  const Int8Columns w(W.cols, W.rows, arena);
  run_parts({{panels_of(w), packing(QKV_DISPATCH(PackTransposedColumns), W, w)}, {runs_of(x), quantizing(X, x)}});
  const auto multiply = QKV_DISPATCH(MultiplyInt8Rows);
  const ResultBlocks blocks = blocks_of_rows(Y.rows, Y.cols);
  parallel_for(blocks.count(), [&](int64_t i) {
    multiply(x, w, b, false, blocks[i], Y);
    epilogue.apply(Y, blocks[i]);
  });
}

void int8_linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                          const LinearGradients<float>& g, Arena& arena) {
  const int64_t N = dY.rows, in = W.cols, out = W.rows;
  if (N == 0) return;
  const bool has_dW = g.dW.data;
  const ProfiledOp profiled("linear, int8, backward", {N, out, in}, product_work(N, out, in, has_dW ? 2 : 1));
  const Arena::Scope scope(arena);
  const Int8Rows dy(N, out, arena);
  const Int8Columns w(out, in, arena), x(has_dW ? N : 0, in, arena), dyt(has_dW ? N : 0, out, arena);
  run_parts({{panels_of(w), packing(QKV_DISPATCH(PackColumns), W, w)},
             {runs_of(dy), quantizing(dY, dy)},
             {panels_of(x), packing(QKV_DISPATCH(PackColumns), X, x)},
             {panels_of(dyt), packing(QKV_DISPATCH(PackLeftColumns), dY, dyt)}});
  const ResultBlocks blocks = blocks_of_rows(N, in), weights{out, in, Int8Columns::kWidth, 256};
  const auto compute_dX = [&](int64_t i) {
    QKV_DISPATCH(MultiplyInt8Rows)(dy, w, nullptr, g.accumulate, blocks[i], g.dX);
    g.epilogue.apply(g.dX, blocks[i]);
  };
  const auto add_dW = [&](int64_t i) {
    const Block at = weights[i];
    if (has_dW) QKV_DISPATCH(MultiplyInt8Columns)(dyt, x, at, g.dW);
    if (g.db && at.col_begin == 0) add_column_sums(dY.col_range(at.row_begin, at.row_end), g.db + at.row_begin);
  };
  run_parts({{weights.count(), add_dW}, {blocks.count(), compute_dX}});
}

}  // namespace qkv
#endif
