// From log p, the model's, to log q, what the search goes by: tokens that may not come next, and those that get worse.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decode/hypothesis.h"

namespace qkv {

// The next token of one hypothesis: log q(v) = values[v] + offset; −∞ where v may not come.
struct NextToken {
  std::span<float> values;  // [V]
  float offset = 0;
  std::vector<std::pair<int32_t, float>> changed = {};  // tokens whose value is no longer log p, and log p

  float log_q(int32_t token) const { return values[static_cast<size_t>(token)] + offset; }
  float log_p(int32_t token) const {
    for (const auto& [id, log_p] : changed)
      if (id == token) return log_p;
    return values[static_cast<size_t>(token)];
  }
};

// `row`, log p: [V], changes in place. history: the hypothesis so far.
//   The end token, before min_length tokens: out before the softmax, so that q = p / (1 − p(end)) for the others.
//   Tokens of `never`, and those that would end an n-gram of the history once more: out, without normalising again.
//   Tokens of the history, with a repetition penalty θ: log q = θ log p.
NextToken next_token(std::span<float> row, std::span<const int32_t> history, const SearchOptions& options);

}  // namespace qkv
