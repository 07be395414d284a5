// Ranks of logits: counts per thread, row and threshold, which are added at the end.
#include "ops/logit_ranks.h"

#include <algorithm>

#include "core/system/isa.h"
#include "core/to_size.h"
#include "ops/cpu/logits/logit_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/logit_ranks.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/logits/best_tokens-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Updates the best tokens of each row of a block and adds to the counts of its thresholds.
void ReadRanks(Matrix<const float> x, int32_t first_token, Matrix<const float> thresholds, Matrix<int64_t> counts,
               TokenHeap* best) {
  const Vector never_below = set(HUGE_VALF);
  for (int64_t n = 0; n < x.rows; n++) {
    keep_best(x.row(n), x.cols, first_token, best[n]);
    for (int64_t t = 0; t < thresholds.cols; t++) {
      const Vector threshold = set(thresholds(n, t));
      size_t below = 0;
      for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
        below += hn::CountTrue(Floats(), hn::Lt(io.only(io.load(x.row(n) + c), never_below), threshold));
      });
      counts(n, t) += x.cols - static_cast<int64_t>(below);
    }
  }
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(ReadRanks);

namespace {

void change_logits(const LogitChanges& changes, const Block& at, Matrix<float> logits) {
  for (int64_t n = at.row_begin; n < at.row_end; n++) {
    float* row = logits.row(n - at.row_begin);
    if (!changes.added.empty()) {
      const std::span<const ScoredToken> added = changes.added[to_size(n)];
      for (auto a = std::ranges::lower_bound(added, at.col_begin, {}, &ScoredToken::token);
           a != added.end() && a->token < at.col_end; a++)
        row[a->token - at.col_begin] += a->logit;
    }
    if (!changes.hidden.empty()) {
      const std::span<const int32_t> hidden = changes.hidden[to_size(n)];
      for (auto token = std::ranges::lower_bound(hidden, at.col_begin); token != hidden.end() && *token < at.col_end;
           token++)
        row[*token - at.col_begin] = -HUGE_VALF;
    }
  }
}

template <class Weights>
void logit_ranks_of(Matrix<const float> X, const Weights& W, const float* b, const LogitChanges& changes,
                    const LogitRanks& ranks, Arena& scratch) {
  const Arena::Scope scope(scratch);
  const auto read_ranks = QKV_DISPATCH(ReadRanks);
  const int64_t N = X.rows, T = ranks.thresholds.cols, workers = threads();
  const Matrix<int64_t> counts = scratch.zeros<int64_t>(workers * N, T);
  const auto read = [&](const Block& at, Matrix<float> logits, TokenHeap* heaps) {
    change_logits(changes, at, logits);
    const int64_t first = thread_number() * N;
    read_ranks(logits, static_cast<int32_t>(at.col_begin), ranks.thresholds.row_range(at.row_begin, at.row_end),
               counts.row_range(first + at.row_begin, first + at.row_end), heaps);
  };
  const auto finish = [&](int64_t n, const TokenHeap& heap) {
    write_best(heap, ranks.best, n);
    for (int64_t t = 0; t < T; t++) {
      ranks.not_below(n, t) = 0;
      for (int64_t worker = 0; worker < workers; worker++) ranks.not_below(n, t) += counts(worker * N + n, t);
    }
  };
  read_logit_blocks<TokenHeap>(X, W, b, {ranks.best.logits.cols, read, finish}, scratch);
}

}  // namespace

void logit_ranks(Matrix<const float> X, Matrix<const float> W, const float* b, const LogitChanges& changes,
                 const LogitRanks& ranks, Arena& scratch) {
  logit_ranks_of(X, W, b, changes, ranks, scratch);
}

void logit_ranks(Matrix<const float> X, const Int8Matrix& W, const float* b, const LogitChanges& changes,
                 const LogitRanks& ranks, Arena& scratch) {
  logit_ranks_of(X, W, b, changes, ranks, scratch);
}

}  // namespace qkv
#endif
