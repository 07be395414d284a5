#include "decode/search/candidates.h"

#include <algorithm>
#include <cmath>

#include "core/sorted_unique.h"
#include "core/to_size.h"
#include "decode/engine/ensemble.h"

namespace qkv {

namespace {

constexpr size_t kValuesAtOnce = 64;  // that are passed over together if the largest is too small

// Returns the largest value; NaN counts as none.
float largest(std::span<const float> values) {
  float found = -INFINITY;
  for (const float value : values) found = value > found ? value : found;
  return found;
}

}  // namespace

std::vector<Candidate> best_candidates(std::span<const NextToken> next, std::span<const double> sums, size_t count) {
  std::vector<Candidate> best;  // a heap with the worst candidate on top
  for (size_t i = 0; i < next.size(); i++) {
    const double before = sums[i] + static_cast<double>(next[i].offset);
    double bar = best.size() < count ? -INFINITY : best.front().sum - before;
    const std::span<const float> values = next[i].values;
    for (size_t begin = 0; begin < values.size(); begin += kValuesAtOnce) {
      const size_t end = std::min(begin + kValuesAtOnce, values.size());
      if (!(static_cast<double>(largest(values.subspan(begin, end - begin))) > bar)) continue;
      for (size_t v = begin; v < end; v++) {
        const double log_q = static_cast<double>(values[v]);
        if (!(log_q > bar)) continue;
        if (best.size() == count) {
          std::pop_heap(best.begin(), best.end());
          best.pop_back();
        }
        best.push_back({before + log_q, 0, static_cast<int32_t>(i), static_cast<int32_t>(v)});
        std::push_heap(best.begin(), best.end());
        if (best.size() == count) bar = best.front().sum - before;
      }
    }
  }
  std::sort_heap(best.begin(), best.end());
  for (Candidate& c : best) c.log_p = next[to_size(c.parent)].log_p(c.token);
  return best;
}

bool best_are_enough(const Ensemble& models, const SearchInput& input, const SearchOptions& options) {
  return models.size() == 1 && !options.sampling && options.repetition_penalty == 1 && options.no_repeat_ngram == 0 &&
         input.prefix.empty() && !input.terms;
}

Excluded excluded_tokens(const SearchOptions& options, bool before_min_length) {
  Excluded excluded{options.never};
  if (before_min_length) excluded.tokens.push_back(excluded.end = options.end);
  excluded.tokens = sorted_unique(std::move(excluded.tokens));
  return excluded;
}

BestNext best_next(const NextTokens& best, const Excluded& excluded) {
  BestNext next{best, {}};
  // Tokens other than the end token still count in the sum.
  for (int64_t n = 0; n < best.tokens.rows; n++) {
    float mass = best.lse_seen[n];
    for (size_t i = 0; i < excluded.tokens.size(); i++)
      if (excluded.tokens[i] != excluded.end) mass = log_add_exp(mass, best.hidden(n, static_cast<int64_t>(i)));
    next.log_mass.push_back(mass);
  }
  return next;
}

std::vector<Candidate> best_candidates(const BestNext& next, int64_t first_row, std::span<const double> sums,
                                       size_t count) {
  std::vector<Candidate> best;
  const int64_t tokens = std::min(next.tokens.tokens.cols, static_cast<int64_t>(count));
  for (size_t i = 0; i < sums.size(); i++) {
    const int64_t n = first_row + static_cast<int64_t>(i);
    if (std::isnan(next.tokens.lse[n])) continue;
    const float mass = next.log_mass[to_size(n)];
    for (int64_t j = 0; j < tokens && next.tokens.tokens(n, j) >= 0; j++) {
      const float logit = next.tokens.logits(n, j);
      best.push_back({sums[i] + static_cast<double>(logit - mass), logit - next.tokens.lse[n], static_cast<int32_t>(i),
                      next.tokens.tokens(n, j)});
    }
  }
  const size_t kept = std::min(count, best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept), best.end());
  best.resize(kept);
  return best;
}

}  // namespace qkv
