#include "ops/cpu/linear/tile_linear.h"

#include <algorithm>

#include "core/system/isa.h"
#include "core/system/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/linear/tile_linear.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/linear/product-inl.h"
#include "ops/cpu/simd/partial_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void AddWeightParts(Matrix<const float> parts, float* sums) { add_partial_sums(parts, sums); }

int64_t CountPanels(int64_t cols) { return ColumnPanels{cols}.count(); }

void PackPanel(Matrix<const float> W, bool transpose, int64_t panel, float* packed) {
  transpose ? pack_transposed_panel(W, panel, packed) : pack_panel(W, panel, packed);
}

void MultiplyRows(Matrix<const float> X, const float* packed, const float* b, bool accumulate, Matrix<float> Y) {
  multiply_rows(X, packed, b, accumulate, Y);
}

void AddOuterProducts(Matrix<const float> A, Matrix<const float> X, Matrix<float> C) { add_outer_products(A, X, C); }

void AddColumnSums(Matrix<const float> x, float* sums) { add_sums(x, sums); }

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AddWeightParts);
HWY_EXPORT(CountPanels);
HWY_EXPORT(PackPanel);
HWY_EXPORT(MultiplyRows);
HWY_EXPORT(AddOuterProducts);
HWY_EXPORT(AddColumnSums);

void add_column_sums(Matrix<const float> x, float* sums) { QKV_DISPATCH(AddColumnSums)(x, sums); }

namespace {

constexpr int64_t kMostRows = 192, kLeastRows = 48, kRunRows = 512, kBandColumns = 96;

// Returns the number of rows in a block: an eighth of all rows, within limits, and a whole number of tiles.
int64_t rows_of_a_block(int64_t N) { return std::clamp((N + 47) / 48 * 6, kLeastRows, kMostRows); }

// Packs Wᵀ or W into panels of whole vectors; the memory comes from the arena.
float* packed(Matrix<const float> W, bool transpose, Arena& arena) {
  const int64_t cols = transpose ? W.rows : W.cols, depth = transpose ? W.cols : W.rows;
  float* panels = arena.take<float>((cols + 15) / 16 * 16 * depth);
  const auto pack = QKV_DISPATCH(PackPanel);
  parallel_for(QKV_DISPATCH(CountPanels)(cols), [&](int64_t panel) { pack(W, transpose, panel, panels); });
  return panels;
}

// The work of one task of a backward pass: dX of some rows, or the contribution of a block of dY to dW and db.
struct BackwardBlocks {
  Matrix<const float> X, dY;
  const LinearGradients<float>& g;
  const float* panels;  // W in panels

  // Computes dX for rows [begin, end).
  void compute_dX(int64_t begin, int64_t end) const {
    QKV_DISPATCH(MultiplyRows)
    (dY.row_range(begin, end), panels, nullptr, g.accumulate, g.dX.row_range(begin, end));
    g.epilogue.apply(g.dX, {begin, end, 0, g.dX.cols});
  }
  // Adds the contribution of one block of dY to its rows of dW and to db, unless they are null.
  void add(const Block& at, Matrix<float> dW, float* db) const {
    const Matrix<const float> block = dY.block(at);
    if (dW.data) QKV_DISPATCH(AddOuterProducts)(block, X.row_range(at.row_begin, at.row_end), dW);
    if (db) add_column_sums(block, db);
  }
};

// Few weights: a task computes dX and a partial dW and db for a run of rows, which stay in the cache. The partial sums
// are added up in order; a single run adds to dW directly.
void backward_by_runs(const BackwardBlocks& blocks, Arena& arena) {
  const LinearGradients<float>& g = blocks.g;
  const int64_t N = blocks.dY.rows, in = g.dW.cols, out = g.dW.rows;
  const int64_t run = N <= kRunRows ? N : std::clamp<int64_t>((N + 7) / 8, 64, kRunRows), runs = (N + run - 1) / run;
  const int64_t parts = runs > 1 ? runs : 0;
  const Matrix<float> dW_parts = arena.matrix<float>(parts, out * in), db_parts = arena.matrix<float>(parts, out);
  parallel_for(runs, [&](int64_t i) {
    Matrix<float> dW = g.dW;
    float* db = g.db;
    if (parts) {
      dW = {dW_parts.row(i), out, in};
      std::fill_n(dW.data, out * in, 0.0f);
      if (db) db = std::fill_n(db_parts.row(i), out, 0.0f) - out;
    }
    const int64_t last = std::min(N, (i + 1) * run);
    for (int64_t begin = i * run; begin < last; begin += kMostRows) {
      const int64_t end = std::min(last, begin + kMostRows);
      blocks.add({begin, end, 0, out}, dW, db);
      blocks.compute_dX(begin, end);
    }
  });
  const auto add_parts = QKV_DISPATCH(AddWeightParts);
  parallel_for(parts ? out : 0, [&](int64_t o) {
    add_parts(dW_parts.col_range(o * in, (o + 1) * in), g.dW.row(o));
    if (g.db) add_parts(db_parts.col_range(o, o + 1), g.db + o);
  });
}

// Many weights, or no dW: a task computes dX for some rows, or adds to some rows of dW and db.
void backward_by_bands(const BackwardBlocks& blocks) {
  const LinearGradients<float>& g = blocks.g;
  const int64_t N = blocks.dY.rows, out = blocks.dY.cols, rows = rows_of_a_block(N);
  const int64_t bands = (out + kBandColumns - 1) / kBandColumns;
  parallel_for(bands + (N + rows - 1) / rows, [&](int64_t i) {
    if (i >= bands) return blocks.compute_dX((i - bands) * rows, std::min(N, (i - bands + 1) * rows));
    const int64_t first = i * kBandColumns, last = std::min(out, first + kBandColumns);
    for (int64_t begin = 0; begin < N; begin += kMostRows)
      blocks.add({begin, std::min(N, begin + kMostRows), first, last}, g.dW.data ? g.dW.row_range(first, last) : g.dW,
                 g.db ? g.db + first : nullptr);
  });
}

}  // namespace

void tile_linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& arena,
                 const Epilogue<float>& epilogue) {
  const auto multiply = QKV_DISPATCH(MultiplyRows);
  const Arena::Scope scope(arena);
  const float* panels = packed(W, true, arena);
  parallel_blocks(X.rows, rows_of_a_block(X.rows), [&](int64_t begin, int64_t end) {
    multiply(X.row_range(begin, end), panels, b, false, Y.row_range(begin, end));
    epilogue.apply(Y, {begin, end, 0, Y.cols});
  });
}

void tile_linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                          const LinearGradients<float>& g, Arena& arena) {
  const Arena::Scope scope(arena);
  const BackwardBlocks blocks{X, dY, g, packed(W, false, arena)};
  few_weights(W) && g.dW.data ? backward_by_runs(blocks, arena) : backward_by_bands(blocks);
}

}  // namespace qkv
#endif
