// Computes the best continuations of a sentence's hypotheses from the hidden states of a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/engine/ensemble.h"
#include "decode/search/restrictions.h"
#include "ops/next_tokens.h"

namespace qkv {

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

// Tokens that are excluded in the same way for all hypotheses of a step.
struct Excluded {
  std::vector<int32_t> tokens;  // in increasing order
  int32_t end = -1;             // the end token if it is among them, excluded before the softmax; otherwise −1

  bool operator==(const Excluded&) const = default;
};

// Returns the excluded tokens of a hypothesis of fewer than min_length tokens, or of a longer one.
Excluded excluded_tokens(const SearchOptions& options, bool before_min_length);

// The best next tokens of hypotheses, computed without storing rows of log p.
struct BestNext {
  NextTokens tokens;            // `count` for each hypothesis, without excluded tokens
  std::vector<float> log_mass;  // [N]: log Σ e^logit over the tokens over which q is normalized
};

// Returns whether BestNext is sufficient for a sentence: there is one model, restrictions are the same for all its
// hypotheses, and no token is forced or required.
bool best_are_enough(const Ensemble& models, const SearchInput& input, const SearchOptions& options);

// Computes them from the best tokens without the excluded ones.
BestNext best_next(const NextTokens& best, const Excluded& excluded);

// Returns the best continuations as above. The hypotheses have the rows of `next` from first_row on, of which the first
// `count` tokens count.
std::vector<Candidate> best_candidates(const BestNext& next, int64_t first_row, std::span<const double> sums,
                                       size_t count);

}  // namespace qkv
