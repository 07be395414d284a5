#include "decode/search/restrictions.h"

#include <algorithm>
#include <cmath>

#include "core/to_size.h"

namespace qkv {
namespace {

// Returns log Σ exp over the row without one entry, which is log(1 − exp(entry)) because the row is normalized. If the
// difference would lose precision, sums the other entries instead.
double log_of_the_others(std::span<const float> row, size_t left_out) {
  if (row[left_out] < -0.01f) return std::log1p(-std::exp(static_cast<double>(row[left_out])));
  double sum = 0;
  for (size_t v = 0; v < row.size(); v++)
    if (v != left_out) sum += std::exp(static_cast<double>(row[v]));
  return std::log(sum);
}

// Returns the tokens that followed earlier occurrences of the last n − 1 tokens.
std::vector<int32_t> ends_of_ngrams(std::span<const int32_t> history, int64_t n) {
  std::vector<int32_t> ends;
  const size_t before = to_size(n) - 1;
  if (history.size() <= before) return ends;
  const std::span<const int32_t> last = history.last(before);
  for (size_t i = 0; i + before < history.size(); i++)
    if (std::ranges::equal(history.subspan(i, before), last)) ends.push_back(history[i + before]);
  return ends;
}

std::vector<int32_t> different(std::span<const int32_t> history) {
  std::vector<int32_t> tokens(history.begin(), history.end());
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace

NextToken next_token(std::span<float> row, std::span<const int32_t> history, const SearchOptions& options) {
  NextToken next{row};
  if (static_cast<int64_t>(history.size()) < options.min_length) {
    next.offset = static_cast<float>(-log_of_the_others(row, to_size(options.end)));
    next.change(options.end, -INFINITY);
  }
  if (options.repetition_penalty != 1)
    for (const int32_t token : different(history))
      next.change(token, static_cast<float>(options.repetition_penalty) * row[to_size(token)]);
  for (const int32_t token : options.never) next.change(token, -INFINITY);
  if (options.no_repeat_ngram > 0)
    for (const int32_t token : ends_of_ngrams(history, options.no_repeat_ngram)) next.change(token, -INFINITY);
  return next;
}

void add_biases(NextToken& next, const TokenCounts& counts, const GenerateOptions& options) {
  const auto add = [&](int32_t token, double bias) {
    if (bias != 0) next.change(token, next.values[to_size(token)] + static_cast<float>(bias));
  };
  for (const auto& [token, count] : counts)
    add(token, -options.presence_penalty - static_cast<double>(count) * options.frequency_penalty);
  for (const auto& [token, bias] : options.logit_bias) add(token, bias);
}

}  // namespace qkv
