// Every thread keeps the best of each row that it has seen; which thread saw a block does not matter to the best of
// all.
#include "ops/logits/best_logits.h"

#include <algorithm>

#include "core/isa.h"
#include "core/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/logits/best_logits.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/logits/best_tokens-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

void KeepBest(Matrix<const float> x, int32_t first_token, TokenHeap* best) {
  for (int64_t n = 0; n < x.rows; n++) keep_best(x.row(n), x.cols, first_token, best[n]);
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(KeepBest);

namespace {

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
  row_linear_blocks(X, W, b, {place, after}, scratch);

  parallel_for(N, [&](int64_t n) {
    for (int64_t t = 1; t < rooms; t++)
      for (const TokenHeap& other = heaps[t * N + n]; const ScoredToken& token : std::span(other.tokens, other.size))
        heaps[n].add(token);
    write_best(heaps[n], best, n);
  });
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
