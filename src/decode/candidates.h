// Computes the best continuations of a sentence's hypotheses from the hidden states of a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/key_value_cache.h"
#include "decode/restrictions.h"
#include "ops/logits/next_tokens.h"

namespace qkv {

// Returns log p of the next token of every hypothesis added to the cache's step, [N, V]. For an ensemble, p is the mean
// of the models' probabilities. ids: [N], the last token of each hypothesis.
Matrix<float> next_log_probabilities(const Ensemble& models, KeyValueCache& cache, std::span<const int32_t> ids,
                                     Context& c);

// A hypothesis with one more token.
struct Candidate {
  double sum = 0;   // Σ log q of all its tokens
  float log_p = 0;  // of the new token
  int32_t parent = 0, token = 0;

  bool operator<(const Candidate& other)
      const {  // better first; ties are broken by parent and token, so that the order is deterministic
    if (sum != other.sum) return sum > other.sum;
    return parent != other.parent ? parent < other.parent : token < other.token;
  }
};

// Returns the best `count` continuations of hypotheses, best first. next: the next tokens of each hypothesis. sums[i]:
// Σ log q of hypothesis i so far. Returns fewer if fewer tokens are allowed, and none if the model's output is NaN.
std::vector<Candidate> best_candidates(std::span<const NextToken> next, std::span<const double> sums, size_t count);

// The best next tokens of hypotheses, computed without storing rows of log p.
struct BestNext {
  NextTokens tokens;            // `count` for each hypothesis, without excluded tokens
  std::vector<float> log_mass;  // [N]: log Σ e^logit over the tokens over which q is normalized
};

// Returns whether BestNext is sufficient: there is one model, and restrictions are the same for all hypotheses.
bool best_are_enough(const Ensemble& models, const SearchOptions& options);

// Computes the best tokens of a step. t: the number of tokens of the hypotheses.
BestNext best_next(const Transformer<float>& model, KeyValueCache& cache, std::span<const int32_t> ids, int64_t t,
                   const SearchOptions& options, size_t count, Context& c);

// Returns the best continuations as above. The hypotheses have the rows of `next` from first_row on.
std::vector<Candidate> best_candidates(const BestNext& next, int64_t first_row, std::span<const double> sums,
                                       size_t count);

}  // namespace qkv
