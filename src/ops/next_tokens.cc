#include "ops/next_tokens.h"

#include <algorithm>
#include <cmath>

#include "core/isa.h"
#include "core/threads.h"
#include "ops/best_tokens.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/next_tokens.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

BlockSum ReadLogits(const float* x, int64_t cols, int32_t first_token, BestTokens& best) {
  Vector most = set(-HUGE_VALF);
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR { most = hn::Max(io.only(io.load(x + c), most), most); });
  const float largest = max_of_lanes(most);
  if (largest >= best.bar() && largest > -HUGE_VALF) {
    for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
      const auto reach = hn::Ge(io.only(io.load(x + c), set(-HUGE_VALF)), set(best.bar()));
      if (hn::AllFalse(Floats(), reach)) return;
      for (int64_t l = c; l < HWY_MIN(cols, c + lanes()); l++)
        if (x[l] > -HUGE_VALF) best.add({x[l], first_token + static_cast<int32_t>(l)});
    });
  }
  const Vector shift = set(HWY_MAX(largest, hwy::LowestValue<float>()));  // finite: hidden tokens keep their −∞
  Vector sum = zero();
  for_columns(cols, [&](int64_t c, auto io) HWY_ATTR {
    sum = hn::Add(sum, io.only(exp2(hn::Mul(hn::Sub(io.load(x + c), shift), set(kLog2e))), zero()));
  });
  return {largest, sum_of_lanes(sum)};
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(ReadLogits);

namespace {

// log Σ e^x over the parts of a sum.
float log_sum_exp(std::span<const BlockSum> parts) {
  float largest = hwy::LowestValue<float>();
  for (const BlockSum& part : parts) largest = std::max(largest, part.largest);
  double sum = 0;
  for (const BlockSum& part : parts)
    sum += static_cast<double>(part.sum) * std::exp(static_cast<double>(part.largest - largest));
  return static_cast<float>(static_cast<double>(largest) + std::log(sum));
}

}  // namespace

float log_add_exp(float a, float b) {
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  if (x == y) return static_cast<float>(x + std::log(2.0));  // infinities too
  return static_cast<float>(std::max(x, y) + std::log1p(std::exp(-std::abs(x - y))));
}

namespace {

template <class Weights>
void read_blocks(Matrix<const float> X, const Weights& W, int64_t V, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch) {
  const Arena::Scope scope(scratch);
  const int64_t N = X.rows, k = next.logits.cols, blocks = (V + kBlockColumns - 1) / kBlockColumns;
  const Matrix<BlockSum> sums = scratch.matrix<BlockSum>(N, blocks);
  BestTokens* best = scratch.take<BestTokens>(threads() * N);  // of each thread and row
  ScoredToken* heaps = scratch.take<ScoredToken>(threads() * N * k);
  for (int64_t i = 0; i < threads() * N; i++) best[i] = {heaps + i * k, 0, static_cast<int32_t>(k)};
  float* room = scratch.take<float>(threads() * kBlockRows * kBlockColumns);

  const auto read = QKV_DISPATCH(ReadLogits);
  const auto place = [&](const Block& at) {
    return Matrix<float>(room + omp_get_thread_num() * kBlockRows * kBlockColumns, at.row_end - at.row_begin,
                         at.col_end - at.col_begin, kBlockColumns);
  };
  const auto after = [&](const Block& at, Matrix<float> logits) {
    const auto first = std::ranges::lower_bound(hidden, at.col_begin),
               last = std::ranges::lower_bound(hidden, at.col_end);
    for (int64_t n = at.row_begin; n < at.row_end; n++) {
      float* row = logits.row(n - at.row_begin);
      for (auto token = first; token != last; token++) {
        next.hidden(n, token - hidden.begin()) = row[*token - at.col_begin];
        row[*token - at.col_begin] = -HUGE_VALF;
      }
      sums(n, at.col_begin / kBlockColumns) =
          read(row, logits.cols, static_cast<int32_t>(at.col_begin), best[omp_get_thread_num() * N + n]);
    }
  };
  row_linear_blocks(X, W, b, {place, after}, scratch);

  parallel_for(N, [&](int64_t n) {
    next.lse_seen[n] = log_sum_exp({sums.row(n), static_cast<size_t>(blocks)});
    next.lse[n] = next.lse_seen[n];
    for (int64_t i = 0; i < next.hidden.cols; i++) next.lse[n] = log_add_exp(next.lse[n], next.hidden(n, i));
    for (int64_t t = 1; t < threads(); t++)
      for (int32_t i = 0; i < best[t * N + n].size; i++) best[n].add(best[t * N + n].heap[i]);
    std::sort_heap(best[n].heap, best[n].heap + best[n].size);
    for (int64_t i = 0; i < k; i++) {
      const bool there = i < best[n].size;
      next.logits(n, i) = there ? best[n].heap[i].logit : -HUGE_VALF;
      next.tokens(n, i) = there ? best[n].heap[i].token : -1;
    }
  });
}

}  // namespace

void next_tokens(Matrix<const float> X, Matrix<const float> W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch) {
  read_blocks(X, W, W.rows, b, hidden, next, scratch);
}

void next_tokens(Matrix<const float> X, const Int8Matrix& W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch) {
  read_blocks(X, W, W.values.rows, b, hidden, next, scratch);
}

}  // namespace qkv
#endif
