#include "ops/next_tokens.h"

#include <algorithm>
#include <cmath>

#include "core/system/isa.h"
#include "core/to_size.h"
#include "ops/cpu/logits/logit_blocks.h"
#include "ops/softcap.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/logits/next_tokens.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/cpu/logits/best_tokens-inl.h"
#include "ops/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Reads one block of logits: updates best[n] of each row and assigns sums.largest(n, block) and sums.sum(n, block).
// Four rows are processed together, so that their dependency chains overlap.
void ReadLogits(Matrix<const float> x, int32_t first_token, BestTokens* best, const BlockSums& sums, int64_t block) {
  for (int64_t n = 0; n < x.rows; n += 4) {
    const int64_t last = x.rows - 1;
    const float* const rows[4] = {x.row(n), x.row(HWY_MIN(n + 1, last)), x.row(HWY_MIN(n + 2, last)),
                                  x.row(HWY_MIN(n + 3, last))};
    const Vector least = set(-HUGE_VALF);
    Vector m0 = least, m1 = least, m2 = least, m3 = least;
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
      m0 = hn::Max(io.only(io.load(rows[0] + c), least), m0);
      m1 = hn::Max(io.only(io.load(rows[1] + c), least), m1);
      m2 = hn::Max(io.only(io.load(rows[2] + c), least), m2);
      m3 = hn::Max(io.only(io.load(rows[3] + c), least), m3);
    });
    float largest[4], shift[4], sum[4];
    four_maxima(m0, m1, m2, m3, largest);
    for (int i = 0; i < 4; i++) shift[i] = HWY_MAX(largest[i], hwy::LowestValue<float>());  // finite: −∞ stays −∞
    const Vector t0 = set(shift[0]), t1 = set(shift[1]), t2 = set(shift[2]), t3 = set(shift[3]), log2e = set(kLog2e);
    Vector s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
    for_columns(x.cols, [&](int64_t c, auto io) HWY_ATTR {
      s0 = hn::Add(s0, io.only(exp2(hn::Mul(hn::Sub(io.load(rows[0] + c), t0), log2e)), zero()));
      s1 = hn::Add(s1, io.only(exp2(hn::Mul(hn::Sub(io.load(rows[1] + c), t1), log2e)), zero()));
      s2 = hn::Add(s2, io.only(exp2(hn::Mul(hn::Sub(io.load(rows[2] + c), t2), log2e)), zero()));
      s3 = hn::Add(s3, io.only(exp2(hn::Mul(hn::Sub(io.load(rows[3] + c), t3), log2e)), zero()));
    });
    four_sums(s0, s1, s2, s3, sum);
    for (int64_t i = 0; i < HWY_MIN(4, x.rows - n); i++) {
      sums.largest(n + i, block) = largest[i];
      sums.sum(n + i, block) = sum[i];
      if (largest[i] >= best[n + i].bar() && largest[i] > -HUGE_VALF)
        keep_best(rows[i], x.cols, first_token, best[n + i]);
    }
  }
}

// Returns log Σ_i sum_i e^largest_i.
float LogSum(const float* largest, const float* sum, int64_t blocks) {
  Vector most = set(hwy::LowestValue<float>()), total = zero();
  for_columns(blocks, [&](int64_t c, auto io) HWY_ATTR { most = hn::Max(io.only(io.load(largest + c), most), most); });
  const Vector shift = set(max_of_lanes(most));
  for_columns(blocks, [&](int64_t c, auto io) HWY_ATTR {
    const Vector factor = exp2(hn::Mul(hn::Sub(io.load(largest + c), shift), set(kLog2e)));
    total = hn::Add(total, io.only(hn::Mul(factor, io.load(sum + c)), zero()));
  });
  return hn::GetLane(shift) + std::log(sum_of_lanes(total));
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(ReadLogits);
HWY_EXPORT(LogSum);

float log_add_exp(float a, float b) {
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  if (x == y) return static_cast<float>(x + std::log(2.0));  // infinities too
  return static_cast<float>(std::max(x, y) + std::log1p(std::exp(-std::abs(x - y))));
}

namespace {

template <class Weights>
void next_tokens_of(Matrix<const float> X, const Weights& W, int64_t V, const float* b, std::span<const int32_t> hidden,
                    const NextTokens& next, Arena& scratch, float cap) {
  const Arena::Scope scope(scratch);
  const int64_t blocks = (V + kSinkColumns - 1) / kSinkColumns;
  const BlockSums sums{scratch.matrix<float>(X.rows, blocks), scratch.matrix<float>(X.rows, blocks)};

  const auto kernel = QKV_DISPATCH(ReadLogits);
  const auto log_sum = QKV_DISPATCH(LogSum);
  const auto read = [&](const Block& at, Matrix<float> logits, BestTokens* best) {
    if (cap > 0) softcap(logits, cap);
    const auto first = std::ranges::lower_bound(hidden, at.col_begin),
               last = std::ranges::lower_bound(hidden, at.col_end);
    for (auto token = first; token != last; token++)
      for (int64_t n = at.row_begin; n < at.row_end; n++) {
        float& logit = logits(n - at.row_begin, *token - at.col_begin);
        next.hidden(n, token - hidden.begin()) = logit;
        logit = -HUGE_VALF;
      }
    kernel(logits, static_cast<int32_t>(at.col_begin), best,
           {sums.largest.row_range(at.row_begin, at.row_end), sums.sum.row_range(at.row_begin, at.row_end)},
           at.col_begin / kSinkColumns);
  };
  const auto finish = [&](int64_t n, const BestTokens& best) {
    next.lse_seen[n] = log_sum(sums.largest.row(n), sums.sum.row(n), blocks);
    next.lse[n] = next.lse_seen[n];
    for (int64_t i = 0; i < next.hidden.cols; i++) next.lse[n] = log_add_exp(next.lse[n], next.hidden(n, i));
    write_sorted(std::span(best.tokens, to_size(best.size)), next.logits, next.tokens, n);
  };
  read_logit_blocks<BestTokens>(X, W, b, {next.logits.cols, read, finish}, scratch);
}

}  // namespace

void next_tokens(Matrix<const float> X, Matrix<const float> W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch, float cap) {
  next_tokens_of(X, W, W.rows, b, hidden, next, scratch, cap);
}

void next_tokens(Matrix<const float> X, const Int8Matrix& W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch, float cap) {
  next_tokens_of(X, W, W.values.rows, b, hidden, next, scratch, cap);
}

}  // namespace qkv
#endif
