// The best next tokens, from logits that are stored: ops/next_tokens.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/to_size.h"
#include "ops/next_tokens.h"
#include "qkv/matrix.h"

namespace qkv::reference {

// log Σ_v e^logit_v over the tokens that are not left out; −∞ if there is none.
inline float log_sum_exp(std::span<const float> logits, std::span<const int32_t> left_out) {
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  const auto for_each = [&](auto&& f) {
    for (size_t v = 0; v < logits.size(); v++)
      if (!std::ranges::binary_search(left_out, static_cast<int32_t>(v))) f(static_cast<double>(logits[v]));
  };
  for_each([&](double x) { highest = std::max(highest, x); });
  for_each([&](double x) { sum += x == highest ? 1 : std::exp(x - highest); });  // −∞ may be the highest
  return static_cast<float>(sum == 0 ? highest : highest + std::log(sum));
}

inline void next_tokens(Matrix<const float> logits, std::span<const int32_t> hidden, const NextTokens& next) {
  for (int64_t n = 0; n < logits.rows; n++) {
    const std::span<const float> row(logits.row(n), to_size(logits.cols));
    next.lse[n] = log_sum_exp(row, {});
    next.lse_seen[n] = log_sum_exp(row, hidden);
    for (size_t i = 0; i < hidden.size(); i++) next.hidden(n, static_cast<int64_t>(i)) = row[to_size(hidden[i])];

    std::vector<int32_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](int32_t v) { return std::ranges::binary_search(hidden, v); });
    std::ranges::stable_sort(order, std::greater<>(), [&](int32_t v) { return row[to_size(v)]; });
    for (int64_t i = 0; i < next.tokens.cols; i++) {
      const bool exists = i < std::ssize(order);
      next.tokens(n, i) = exists ? order[to_size(i)] : -1;
      next.logits(n, i) = exists ? row[to_size(order[to_size(i)])] : -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace qkv::reference
