// Computes log q, by which the search ranks tokens, from log p of the model: excludes and penalizes tokens.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/to_size.h"
#include "decode/search/hypothesis.h"
#include "qkv/generator.h"

namespace qkv {

// The distribution of the next token of one hypothesis: log q(v) = values[v] + offset, −∞ if v is excluded.
struct NextToken {
  std::span<float> values;  // [V]
  float offset = 0;
  // Tokens whose value is no longer log p. The first entry of a token has its log p.
  std::vector<std::pair<int32_t, float>> changed = {};

  void change(int32_t token, float value) { changed.emplace_back(token, std::exchange(values[to_size(token)], value)); }
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

// The tokens that a text generated so far contains, with how often.
using TokenCounts = std::map<int32_t, int64_t>;

// Adds options.logit_bias, and subtracts presence_penalty + c · frequency_penalty from each token that occurs c > 0
// times. The softmax is not computed again: sampling needs log q up to a constant only.
void add_biases(NextToken& next, const TokenCounts& counts, const GenerateOptions& options);

}  // namespace qkv
