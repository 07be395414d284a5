// Every thread keeps the best of each row that it has seen; which thread saw a block does not matter to the best of
// all.
#include "ops/best_logits.h"

#include <algorithm>

#include "core/isa.h"
#include "core/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/best_logits.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/best_tokens-inl.h"
#include "ops/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

constexpr int64_t kAhead = 4096;  // bytes of W that are asked for beforehand: the next page

// y_v = x · W_v + b_v for all rows of W.
void DotRows(const float* x, Matrix<const float> W, const float* b, float* y) {
  for (int64_t v = 0; v < W.rows; v += 4) {
    const int64_t last = W.rows - 1;
    const float* const rows[4] = {W.row(v), W.row(HWY_MIN(v + 1, last)), W.row(HWY_MIN(v + 2, last)),
                                  W.row(HWY_MIN(v + 3, last))};
    Vector s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
    for_columns(W.cols, [&](int64_t c, auto io) HWY_ATTR {
      const Vector x_c = io.load(x + c);
      for (const float* row : rows) __builtin_prefetch(reinterpret_cast<const char*>(row + c) + kAhead);
      s0 = hn::MulAdd(x_c, io.load(rows[0] + c), s0);
      s1 = hn::MulAdd(x_c, io.load(rows[1] + c), s1);
      s2 = hn::MulAdd(x_c, io.load(rows[2] + c), s2);
      s3 = hn::MulAdd(x_c, io.load(rows[3] + c), s3);
    });
    float sums[4];
    four_sums(s0, s1, s2, s3, sums);
    for (int64_t i = 0; i < HWY_MIN(4, W.rows - v); i++) y[v + i] = sums[i] + (b ? b[v + i] : 0.0f);
  }
}

void KeepBest(Matrix<const float> x, int32_t first_token, TokenHeap* best) {
  for (int64_t n = 0; n < x.rows; n++) keep_best(x.row(n), x.cols, first_token, best[n]);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(DotRows);
HWY_EXPORT(KeepBest);

namespace {

// The blocks of logits, as row_linear_blocks cuts them: into columns and, of many rows of X, into rows.
void logit_blocks(Matrix<const float> X, Matrix<const float> W, const float* b, BlockSink sink, Arena&) {
  const auto dot_rows = QKV_DISPATCH(DotRows);
  const int64_t strips = (X.rows + kSinkRows - 1) / kSinkRows, columns = (W.rows + kSinkColumns - 1) / kSinkColumns;
  parallel_for(strips * columns, [&](int64_t i) {
    const int64_t row = i / columns * kSinkRows, col = i % columns * kSinkColumns;
    const Block at{row, std::min(X.rows, row + kSinkRows), col, std::min(W.rows, col + kSinkColumns)};
    const Matrix<float> Y = sink.place(at);
    for (int64_t n = at.row_begin; n < at.row_end; n++)
      dot_rows(X.row(n), W.row_range(at.col_begin, at.col_end), b ? b + at.col_begin : nullptr,
               Y.row(n - at.row_begin));
    sink.after(at, Y);
  });
}

void logit_blocks(Matrix<const float> X, const Int8Matrix& W, const float* b, BlockSink sink, Arena& scratch) {
  row_linear_blocks(X, W, b, sink, scratch);
}

template <class Weights>
void read_blocks(Matrix<const float> X, const Weights& W, const float* b, HiddenTokens hidden, const BestLogits& best,
                 Arena& scratch) {
  const Arena::Scope scope(scratch);
  const int64_t N = X.rows, k = best.logits.cols, rooms = threads();
  TokenHeap* heaps = scratch.take<TokenHeap>(rooms * N);  // of each thread and row
  ScoredToken* tokens = scratch.take<ScoredToken>(rooms * N * k);
  for (int64_t i = 0; i < rooms * N; i++) heaps[i] = {tokens + i * k, 0, k};
  float* room = scratch.take<float>(rooms * kSinkRows * kSinkColumns);

  const auto keep = QKV_DISPATCH(KeepBest);
  const auto place = [&](const Block& at) {
    return Matrix<float>(room + omp_get_thread_num() * kSinkRows * kSinkColumns, at.row_end - at.row_begin,
                         at.col_end - at.col_begin, kSinkColumns);
  };
  const auto after = [&](const Block& at, Matrix<float> logits) {
    for (int64_t n = at.row_begin; n < at.row_end && !hidden.empty(); n++) {
      const std::span<const int32_t> of_row = hidden[static_cast<size_t>(n)];
      for (auto token = std::ranges::lower_bound(of_row, at.col_begin); token != of_row.end() && *token < at.col_end;
           token++)
        logits(n - at.row_begin, *token - at.col_begin) = -HUGE_VALF;
    }
    keep(logits, static_cast<int32_t>(at.col_begin), heaps + omp_get_thread_num() * N + at.row_begin);
  };
  logit_blocks(X, W, b, {place, after}, scratch);

  parallel_for(N, [&](int64_t n) {
    for (int64_t t = 1; t < rooms; t++)
      for (const TokenHeap& other = heaps[t * N + n]; const ScoredToken& token : std::span(other.tokens, other.size))
        heaps[n].add(token);
    write_best(heaps[n], best, n);
  });
}

template <class Weights>
void write_blocks(Matrix<const float> X, const Weights& W, const float* b, Matrix<float> Y, Arena& scratch) {
  const Arena::Scope scope(scratch);
  logit_blocks(X, W, b, {[&](const Block& at) { return Y.block(at); }, [](const Block&, Matrix<float>) {}}, scratch);
}

}  // namespace

void best_logits(Matrix<const float> X, Matrix<const float> W, const float* b, HiddenTokens hidden,
                 const BestLogits& best, Arena& scratch) {
  read_blocks(X, W, b, hidden, best, scratch);
}

void best_logits(Matrix<const float> X, const Int8Matrix& W, const float* b, HiddenTokens hidden,
                 const BestLogits& best, Arena& scratch) {
  read_blocks(X, W, b, hidden, best, scratch);
}

void dot_logits(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<float> Y, Arena& scratch) {
  write_blocks(X, W, b, Y, scratch);
}

void dot_logits(Matrix<const float> X, const Int8Matrix& W, const float* b, Matrix<float> Y, Arena& scratch) {
  write_blocks(X, W, b, Y, scratch);
}

void write_best(const TokenHeap& heap, const BestLogits& best, int64_t n) {
  std::sort(heap.tokens, heap.tokens + heap.size);
  for (int64_t i = 0; i < best.logits.cols; i++) {
    const bool there = i < heap.size;
    best.logits(n, i) = there ? heap.tokens[i].logit : -HUGE_VALF;
    best.tokens(n, i) = there ? heap.tokens[i].token : -1;
  }
}

}  // namespace qkv
#endif
