// Beam search over Σ log p(y_t | y_<t, x), many sentences at once, with cached keys and values.
#pragma once

#include <cstdint>
#include <vector>

#include "model/transformer.h"

namespace qkv {

struct SearchOptions {
  int64_t beam = 5;           // 1 is greedy search
  double length_penalty = 1;  // α: a hypothesis of n tokens, the end token included, scores Σ log p / n^α
  int32_t start = 1, end = 2;
};

struct Hypothesis {
  std::vector<int32_t> ids;  // without start and end
  double log_probability = 0;
  double score = 0;
};

// The best hypotheses of every source sequence, best first, between 1 and `beam` of them; none where the model gives no
// number (NaN).
//   A step takes the best 2·beam continuations of a sentence's live hypotheses. Those that end are finished if they are
//   among the best `beam`; the best `beam` others live on. A sentence is done when `beam` have finished and no live one
//   could beat the worst of them at its present length. A translation has at most 2 S + 16 tokens, and no more than the
//   model's max_length: there a live hypothesis is taken as it is.
std::vector<std::vector<Hypothesis>> beam_search(const Transformer<float>& model, const Packed& sources,
                                                 const SearchOptions& options, Arena& arena);

// Takes from the arena the most that beam_search can: a step with every hypothesis alive and at its longest. What it
// computes has no meaning.
void rehearse_search(const Transformer<float>& model, const Packed& sources, const SearchOptions& options,
                     Arena& arena);

}  // namespace qkv
