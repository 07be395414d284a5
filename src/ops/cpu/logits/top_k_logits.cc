// Best logits: one heap of candidates per thread and row.
#include "ops/top_k_logits.h"

#include <algorithm>

#include "core/system/isa.h"
#include "core/to_size.h"
#include "ops/cpu/logits/logit_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/top_k_logits.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/logits/best_tokens-inl.h"

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

// Replaces the logits of a block that are left out by −∞.
void leave_out(const LogitFilter& filter, const Block& at, Matrix<float> logits) {
  for (int64_t n = at.row_begin; n < at.row_end && !filter.hidden.empty(); n++) {
    const std::span<const int32_t> of_row = filter.hidden[to_size(n)];
    for (auto token = std::ranges::lower_bound(of_row, at.col_begin); token != of_row.end() && *token < at.col_end;
         token++)
      logits(n - at.row_begin, *token - at.col_begin) = -HUGE_VALF;
  }
  for (int64_t n = at.row_begin; n < at.row_end && !filter.limits.empty(); n++) {
    const float limit = filter.limits[to_size(n)];
    float* row = logits.row(n - at.row_begin);
    for (int64_t c = 0; c < logits.cols; c++) row[c] = row[c] > limit ? -HUGE_VALF : row[c];
  }
}

template <class Weights>
void best_logits_of(Matrix<const float> X, const Weights& W, const float* b, const LogitFilter& filter,
                    const TopKLogits& best, Arena& scratch) {
  const auto keep = QKV_DISPATCH(KeepBest);
  const auto read = [&](const Block& at, Matrix<float> logits, TokenHeap* heaps) {
    leave_out(filter, at, logits);
    keep(logits, static_cast<int32_t>(at.col_begin), heaps);
  };
  const auto finish = [&](int64_t n, const TokenHeap& heap) { write_best(heap, best, n); };
  read_logit_blocks<TokenHeap>(X, W, b, {best.logits.cols, read, finish}, scratch);
}

}  // namespace

void top_k_logits(Matrix<const float> X, Matrix<const float> W, const float* b, const LogitFilter& filter,
                  const TopKLogits& best, Arena& scratch) {
  best_logits_of(X, W, b, filter, best, scratch);
}

void top_k_logits(Matrix<const float> X, const Int8Matrix& W, const float* b, const LogitFilter& filter,
                  const TopKLogits& best, Arena& scratch) {
  best_logits_of(X, W, b, filter, best, scratch);
}

void write_best(const TokenHeap& heap, const TopKLogits& best, int64_t n) {
  std::sort(heap.tokens, heap.tokens + heap.size);
  write_sorted(std::span(heap.tokens, to_size(heap.size)), best.logits, best.tokens, n);
}

}  // namespace qkv
#endif
