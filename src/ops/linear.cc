#include "ops/linear.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "core/threads.h"
#include "ops/linear_reference.h"

namespace qkv {
namespace {

// Block sizes of the products. They depend on shapes alone, not on the number of threads.
constexpr int64_t kRows = 256;
constexpr int64_t kCols = 512;
constexpr int64_t kFewRows = 64;  // decoding: cut the columns finer, for both threads to have work
constexpr int64_t kColsOfFewRows = 128;

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

// C = op(A) op(B) + beta C, row-major, on one thread. op(A): [M, K], op(B): [K, N].
void product(char transpose_a, char transpose_b, int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
             const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const HoldSignals hold;
  dnnl_sgemm(transpose_a, transpose_b, M, N, K, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

// Calls f(row_begin, row_end, col_begin, col_end) for every block of a rows × cols result.
template <class F>
void for_blocks(int64_t rows, int64_t cols, int64_t row_block, int64_t col_block, F&& f) {
  const int64_t row_blocks = (rows + row_block - 1) / row_block, col_blocks = (cols + col_block - 1) / col_block;
  parallel_for(row_blocks * col_blocks, [&](int64_t i) {
    const int64_t r = i / col_blocks * row_block, c = i % col_blocks * col_block;
    f(r, std::min(rows, r + row_block), c, std::min(cols, c + col_block));
  });
}

int64_t col_block(int64_t rows) { return rows <= kFewRows ? kColsOfFewRows : kCols; }

}  // namespace

template <>
void linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y) {
  for_blocks(Y.rows, Y.cols, kRows, col_block(Y.rows), [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    if (b)
      for (int64_t r = r0; r < r1; r++) std::copy(b + c0, b + c1, Y.row(r) + c0);
    product('N', 'T', r1 - r0, c1 - c0, X.cols, X.row(r0), X.stride, W.row(c0), W.stride, b ? 1.0f : 0.0f,
            Y.row(r0) + c0, Y.stride);
  });
}

template <>
void linear_backward_input(Matrix<const float> dY, Matrix<const float> W, Matrix<float> dX, bool accumulate) {
  for_blocks(dX.rows, dX.cols, kRows, col_block(dX.rows), [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    product('N', 'N', r1 - r0, c1 - c0, dY.cols, dY.row(r0), dY.stride, W.data + c0, W.stride, accumulate ? 1.0f : 0.0f,
            dX.row(r0) + c0, dX.stride);
  });
}

template <>
void linear_backward_weight(Matrix<const float> dY, Matrix<const float> X, Matrix<float> dW, float* db) {
  if (dY.rows == 0) return;
  const int64_t row_block = std::clamp<int64_t>(dW.rows / 8 / 16 * 16, 64, 512);
  for_blocks(dW.rows, dW.cols, row_block, kCols, [&](int64_t o0, int64_t o1, int64_t i0, int64_t i1) {
    product('T', 'N', o1 - o0, i1 - i0, dY.rows, dY.data + o0, dY.stride, X.data + i0, X.stride, 1.0f, dW.row(o0) + i0,
            dW.stride);
    if (db && i0 == 0)
      for (int64_t n = 0; n < dY.rows; n++)
        for (int64_t o = o0; o < o1; o++) db[o] += dY(n, o);
  });
}

template <>
void linear(Matrix<const double> X, Matrix<const double> W, const double* b, Matrix<double> Y) {
  reference::linear(X, W, b, Y);
}

template <>
void linear_backward_input(Matrix<const double> dY, Matrix<const double> W, Matrix<double> dX, bool accumulate) {
  reference::linear_backward_input(dY, W, dX, accumulate);
}

template <>
void linear_backward_weight(Matrix<const double> dY, Matrix<const double> X, Matrix<double> dW, double* db) {
  reference::linear_backward_weight(dY, X, dW, db);
}

}  // namespace qkv
