// Computes log q, by which the search ranks tokens, from log p of the model: excludes and penalizes tokens.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/to_size.h"
#include "decode/hypothesis.h"

namespace qkv {

// The distribution of the next token of one hypothesis: log q(v) = values[v] + offset, −∞ if v is excluded.
struct NextToken {
  std::span<float> values;  // [V]
  float offset = 0;
  std::vector<std::pair<int32_t, float>> changed = {};  // tokens whose value is no longer log p, with their log p

  float log_q(int32_t token) const { return values[to_size(token)] + offset; }
  float log_p(int32_t token) const {
    for (const auto& [id, log_p] : changed)
      if (id == token) return log_p;
    return values[to_size(token)];
  }
};

// Applies the restrictions to row, log p: [V], in place. history: the hypothesis so far.
//   Before min_length tokens, the end token is excluded before the softmax: q = p / (1 − p(end)) for the others.
//   Tokens of `never` and those that would repeat an n-gram of the history are excluded without normalizing again.
//   Tokens of the history get the repetition penalty θ: log q = θ log p.
NextToken next_token(std::span<float> row, std::span<const int32_t> history, const SearchOptions& options);

}  // namespace qkv
