// Linear layers by oneDNN, block by block, for the shapes that ops/cpu/linear/tile_linear.h does not handle. The work
// that follows a product (bias, activation) runs while its block is in the cache.
#include "ops/linear.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "core/profile.h"
#include "core/system/isa.h"
#include "core/system/signals_blocked.h"
#include "core/system/threads.h"
#include "ops/cpu/linear/result_blocks.h"
#include "ops/cpu/linear/tile_linear.h"
#include "ops/reference/linear_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/linear/linear.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/simd/simd-inl.h"
#include "ops/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void AddBias(const float* b, Matrix<float> y) {
  for (int64_t n = 0; n < y.rows; n++) {
    float* y_n = y.row(n);
    for_columns(y.cols,
                [&](int64_t c, auto io) HWY_ATTR { io.store(hn::Add(io.load(y_n + c), io.load(b + c)), y_n + c); });
  }
}

void Transpose(Matrix<const float> x, Matrix<float> y) { transpose(x, y); }

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AddBias);
HWY_EXPORT(Transpose);

namespace {

// Keeps oneDNN on the calling thread when a product is called outside a parallel loop. With its own threads, its sums
// and its allocations would depend on their number.
class SingleThread {
 public:
  SingleThread() : before_(omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~SingleThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

// C = A op(B) + beta C on one thread. A: [M, K]; op(B): [K, N], where B itself is [N, K] if transpose_B is set.
void product(Matrix<const float> A, Matrix<const float> B, bool transpose_B, float beta, Matrix<float> C) {
  const SingleThread single_thread;
  // oneDNN's kernels point the stack pointer into the heap (oneDNN issue 4845, fixed in 2026), so a signal handler that
  // runs at that time would overwrite memory that is in use.
  const SignalsBlocked blocked;
  dnnl_sgemm('N', transpose_B ? 'T' : 'N', C.rows, C.cols, A.cols, 1.0f, A.data, A.stride, B.data, B.stride, beta,
             C.data, C.stride);
}

// Division of a product's result into blocks, each computed by one call of oneDNN. There are few blocks, because every
// call packs its operands, but enough for several threads. The division depends only on the shape, so that the result
// does not depend on the number of threads.
ResultBlocks product_blocks(int64_t rows, int64_t cols, int64_t row_parts, int64_t col_parts) {
  return {rows, cols, ResultBlocks::part(rows, row_parts, 16), ResultBlocks::part(cols, col_parts, 128)};
}
// Blocks of Y = X Wᵀ and dX = dY W.
ResultBlocks blocks_of_product(int64_t rows, int64_t cols) {
  const int64_t blocks = std::clamp<int64_t>(rows * cols >> 18, 8, 64);
  const int64_t row_parts = std::clamp<int64_t>(rows / (cols < 512 ? 64 : 184), 1, blocks);
  const int64_t col_parts = std::clamp<int64_t>(cols / (row_parts == 1 ? 128 : 256), 1, blocks / row_parts);
  return product_blocks(rows, cols, row_parts, col_parts);
}
// Blocks of dW = dYᵀ X: bands of rows whose part of dYᵀ fits in the second-level cache.
ResultBlocks bands_of_weights(int64_t rows, int64_t cols) {
  constexpr int64_t kBand = 128;
  return product_blocks(rows, cols, std::max<int64_t>(4, (rows + kBand - 1) / kBand), 1);
}

// Floating-point operations and bytes of a product [M, K] × [K, N].
Work product_work(int64_t M, int64_t K, int64_t N) {
  const double m = static_cast<double>(M), k = static_cast<double>(K), n = static_cast<double>(N);
  return {2 * m * k * n, 4 * (m * k + k * n + m * n)};
}

}  // namespace

template <>
void linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& arena,
            const Epilogue<float>& epilogue) {
  const ProfiledOp profiled("linear", {X.rows, X.cols, W.rows}, product_work(X.rows, X.cols, W.rows));
  if (suits_tiles(W)) return tile_linear(X, W, b, Y, arena, epilogue);
  const auto add_bias = QKV_DISPATCH(AddBias);
  const ResultBlocks blocks = blocks_of_product(Y.rows, Y.cols);
  parallel_for(blocks.count(), [&](int64_t i) {
    const Block at = blocks[i];
    product(X.row_range(at.row_begin, at.row_end), W.row_range(at.col_begin, at.col_end), true, 0, Y.block(at));
    if (b) add_bias(b + at.col_begin, Y.block(at));
    epilogue.apply(Y, at);
  });
}

// Blocks of dW and blocks of dX are tasks of one parallel loop. A task of dW transposes its columns of dY first,
// because oneDNN is a third faster when the left operand is not transposed.
template <>
void linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                     const LinearGradients<float>& g, Arena& arena) {
  const int64_t N = dY.rows, in = W.cols, out = W.rows;
  if (N == 0) return;
  Work work = product_work(N, out, in);
  if (g.dW.data) work.flops *= 2;
  const ProfiledOp profiled("linear, backward", {N, out, in}, work);
  if (suits_tiles(W)) return tile_linear_backward(X, W, dY, g, arena);
  const auto transposed = QKV_DISPATCH(Transpose);

  const ResultBlocks bands = bands_of_weights(out, in), blocks = blocks_of_product(N, in);
  const Arena::Scope scope(arena);
  const int64_t stride = (N + 15) / 16 * 16 + 16;  // not a power of two, whose rows would share cache sets
  float* memory = arena.take<float>(g.dW.data ? threads() * bands.row_block * stride : 0);
  parallel_for(bands.count() + blocks.count(), [&](int64_t i) {
    if (i < bands.count()) {
      const Block at = bands[i];
      const Matrix<const float> columns = dY.col_range(at.row_begin, at.row_end);
      if (g.dW.data) {
        const Matrix<float> dYt(memory + thread_number() * bands.row_block * stride, columns.cols, N, stride);
        transposed(columns, dYt);
        product(dYt, X, false, 1, g.dW.row_range(at.row_begin, at.row_end));
      }
      if (g.db) add_column_sums(columns, g.db + at.row_begin);
    } else {
      const Block at = blocks[i - bands.count()];
      product(dY.row_range(at.row_begin, at.row_end), W.col_range(at.col_begin, at.col_end), false,
              g.accumulate ? 1 : 0, g.dX.block(at));
      g.epilogue.apply(g.dX, at);
    }
  });
}

template <>
void linear(Matrix<const double> X, Matrix<const double> W, const double* b, Matrix<double> Y, Arena&,
            const Epilogue<double>& epilogue) {
  reference::linear(X, W, b, Y);
  epilogue.apply(Y, Y.whole());
}

template <>
void linear_backward(Matrix<const double> X, Matrix<const double> W, Matrix<const double> dY,
                     const LinearGradients<double>& g, Arena&) {
  reference::linear_backward(X, W, dY, g);
  g.epilogue.apply(g.dX, g.dX.whole());
}

}  // namespace qkv
#endif
