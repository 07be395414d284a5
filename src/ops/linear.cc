// Products by oneDNN, block by block; what follows a product is done while its block is in the cache.
#include "ops/linear.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "core/isa.h"
#include "core/profile.h"
#include "core/threads.h"
#include "ops/linear_reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/simd-inl.h"
#include "ops/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void AddBias(const float* b, Matrix<float> y) {
  for (int64_t n = 0; n < y.rows; n++) {
    float* y_n = y.row(n);
    for_columns(y.cols,
                [&](int64_t c, auto io) HWY_ATTR { io.store(hn::Add(io.load(y_n + c), io.load(b + c)), y_n + c); });
  }
}

// sums[c] += Σ_n x(n, c), by bands of four vectors.
void AddColumnSums(Matrix<const float> x, float* sums) {
  const int64_t band = 4 * lanes();
  for (int64_t begin = 0; begin < x.cols; begin += band) {
    const int64_t cols = HWY_MIN(band, x.cols - begin);
    alignas(64) float sum[4 * 16] = {};
    for (int64_t n = 0; n < x.rows; n++) {
      const float* x_n = x.row(n) + begin;
      for_columns(cols,
                  [&](int64_t c, auto io) HWY_ATTR { io.store(hn::Add(io.load(sum + c), io.load(x_n + c)), sum + c); });
    }
    for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
      io.store(hn::Add(io.load(sums + begin + c), io.load(sum + c)), sums + begin + c);
    });
  }
}

void Transpose(Matrix<const float> x, Matrix<float> y) { transpose(x, y); }

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(AddBias);
HWY_EXPORT(AddColumnSums);
HWY_EXPORT(Transpose);

namespace {

// Holds back signals while a product runs. oneDNN's kernels point the stack pointer into the heap (its issue 4845,
// mended in 2026), so a signal handler that runs then would write its frame over other people's memory. What a thread
// does to itself (SIGSEGV and the like) is not held back.
class HoldSignals {
 public:
  HoldSignals() { pthread_sigmask(SIG_BLOCK, &asynchronous(), &before_); }
  ~HoldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;

 private:
  static const sigset_t& asynchronous() {
    static const sigset_t set = [] {
      sigset_t all;
      sigfillset(&all);
      for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, own);
      return all;
    }();
    return set;
  }

  sigset_t before_;
};

// Keeps oneDNN on the calling thread, where a product of one block is called outside a parallel loop: with threads of
// its own its sums, and its allocations, would depend on their number.
class OneThread {
 public:
  OneThread() : before_(omp_in_parallel() ? 0 : omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// C = A op(B) + beta C, row-major, on one thread. A: [M, K], op(B): [K, N].
void product(char transpose_b, int64_t M, int64_t N, int64_t K, const float* a, int64_t lda, const float* b,
             int64_t ldb, float beta, float* c, int64_t ldc) {
  const OneThread one;
  const HoldSignals hold;
  dnnl_sgemm('N', transpose_b, M, N, K, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

// The cut of a result into blocks, each one call: few, since every call packs its operands, and enough for several
// threads. It depends on the shape alone, so that the number of threads changes nothing.
struct Cut {
  int64_t rows, cols, row_block, col_block;

  Cut(int64_t r, int64_t c, int64_t row_parts, int64_t col_parts)
      : rows(r), cols(c), row_block(part(r, row_parts)), col_block(part(c, col_parts)) {}

  // Of products over whole rows, Y = X Wᵀ and dX = dY W.
  static Cut of_rows(int64_t rows, int64_t cols) {
    constexpr int64_t kBlocks = 8;
    const int64_t row_parts = std::clamp<int64_t>(rows / (cols < 512 ? 64 : 184), 1, kBlocks);
    return {rows, cols, row_parts, std::clamp<int64_t>(cols / (row_parts == 1 ? 128 : 256), 1, kBlocks / row_parts)};
  }
  // Of dW = dYᵀ X: bands of rows whose part of dYᵀ stays in the second-level cache.
  static Cut of_weights(int64_t rows, int64_t cols) {
    return {rows, cols, std::max<int64_t>(4, (rows + kBand - 1) / kBand), 1};
  }
  static constexpr int64_t kBand = 128;

  int64_t col_blocks() const { return (cols + col_block - 1) / col_block; }
  int64_t blocks() const { return (rows + row_block - 1) / row_block * col_blocks(); }

  // Calls f(row_begin, row_end, col_begin, col_end) for block i.
  template <class F>
  void at(int64_t i, F&& f) const {
    const int64_t r = i / col_blocks() * row_block, c = i % col_blocks() * col_block;
    f(r, std::min(rows, r + row_block), c, std::min(cols, c + col_block));
  }

 private:
  static int64_t part(int64_t size, int64_t parts) {  // in whole vectors
    return std::max<int64_t>(16, ((size + parts - 1) / parts + 15) / 16 * 16);
  }
};

// [M, K] times [K, N].
Work product_work(int64_t M, int64_t K, int64_t N) {
  const double m = static_cast<double>(M), k = static_cast<double>(K), n = static_cast<double>(N);
  return {2 * m * k * n, 4 * (m * k + k * n + m * n)};
}

}  // namespace

template <>
void linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y) {
  const ProfiledOp profiled("linear", {X.rows, X.cols, W.rows}, product_work(X.rows, X.cols, W.rows));
  const auto add_bias = QKV_DISPATCH(AddBias);
  const Cut cut = Cut::of_rows(Y.rows, Y.cols);
  parallel_for(cut.blocks(), [&](int64_t i) {
    cut.at(i, [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
      product('T', r1 - r0, c1 - c0, X.cols, X.row(r0), X.stride, W.row(c0), W.stride, 0.0f, Y.row(r0) + c0, Y.stride);
      if (b) add_bias(b + c0, Y.row_range(r0, r1).col_range(c0, c1));
    });
  });
}

// Blocks of dW and of dX are tasks of one loop. A band of dW transposes its columns of dY first: oneDNN is a third
// faster on a left operand that is not transposed.
template <>
void linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                     const LinearGradients<float>& g, Arena& arena) {
  const int64_t N = dY.rows, in = W.cols, out = W.rows;
  if (N == 0) return;
  Work work = product_work(N, out, in);
  work.flops *= 2;
  const ProfiledOp profiled("linear, backward", {N, out, in}, work);
  const auto transposed = QKV_DISPATCH(Transpose);
  const auto add_sums = QKV_DISPATCH(AddColumnSums);

  const Cut weight_cut = Cut::of_weights(out, in), input_cut = Cut::of_rows(N, in);
  const Arena::Scope scope(arena);
  const int64_t stride = (N + 15) / 16 * 16 + 16;  // not a power of two, whose rows would share cache sets
  float* bands = arena.take<float>(threads() * weight_cut.row_block * stride);
  parallel_for(weight_cut.blocks() + input_cut.blocks(), [&](int64_t i) {
    if (i >= weight_cut.blocks())
      return input_cut.at(i - weight_cut.blocks(), [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
        product('N', r1 - r0, c1 - c0, out, dY.row(r0), dY.stride, W.data + c0, W.stride, g.accumulate ? 1.0f : 0.0f,
                g.dX.row(r0) + c0, g.dX.stride);
      });
    weight_cut.at(i, [&](int64_t o0, int64_t o1, int64_t, int64_t) {
      const Matrix<const float> band = dY.col_range(o0, o1);
      float* dYt = bands + omp_get_thread_num() * weight_cut.row_block * stride;
      transposed(band, {dYt, o1 - o0, N, stride});
      product('N', o1 - o0, in, N, dYt, stride, X.data, X.stride, 1.0f, g.dW.row(o0), g.dW.stride);
      if (g.db) add_sums(band, g.db + o0);
    });
  });
}

template <>
void linear(Matrix<const double> X, Matrix<const double> W, const double* b, Matrix<double> Y) {
  reference::linear(X, W, b, Y);
}

template <>
void linear_backward(Matrix<const double> X, Matrix<const double> W, Matrix<const double> dY,
                     const LinearGradients<double>& g, Arena&) {
  reference::linear_backward(X, W, dY, g);
}

}  // namespace qkv
#endif
