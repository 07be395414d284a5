// From a step's hidden states to the best continuations of a sentence's hypotheses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/key_value_cache.h"
#include "decode/restrictions.h"

namespace qkv {

// log p of the next token of every hypothesis added to the cache's step, [N, V]: of an ensemble, the logarithm of the
// mean of the models' probabilities. ids: [N], the tokens that the hypotheses take before.
Matrix<float> next_log_probabilities(const Ensemble& models, KeyValueCache& cache, std::span<const int32_t> ids,
                                     Context& c);

// A hypothesis with one more token.
struct Candidate {
  double sum = 0;   // Σ log q of all its tokens
  float log_p = 0;  // of the new one
  int32_t parent = 0, token = 0;

  bool operator<(const Candidate& other) const {  // better first; ties by place, so that the order is fixed
    if (sum != other.sum) return sum > other.sum;
    return parent != other.parent ? parent < other.parent : token < other.token;
  }
};

// The best `count` continuations of the hypotheses whose next tokens are given, best first; sums[i] is Σ log q of
// hypothesis i so far. Fewer where fewer may come; none where the model gives no number (NaN).
std::vector<Candidate> best_candidates(std::span<const NextToken> next, std::span<const double> sums, size_t count);

// The same without the rows of log p, for one model and restrictions that are the same for all hypotheses.
struct BestNext {
  NextTokens tokens;            // `count` of every hypothesis, without those that may not come
  std::vector<float> log_mass;  // [N]: log Σ e^logit over the tokens that q is normalised over
};
bool best_are_enough(const Ensemble& models, const SearchOptions& options);
BestNext best_next(const Transformer<float>& model, KeyValueCache& cache, std::span<const int32_t> ids, int64_t t,
                   const SearchOptions& options, size_t count, Context& c);
std::vector<Candidate> best_candidates(const BestNext& next, int64_t first_row, std::span<const double> sums,
                                       size_t count);

}  // namespace qkv
