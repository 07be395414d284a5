// Beam search, greedy search and sampling for sentences. docs/decoding.md describes the algorithm.
#pragma once

#include <algorithm>
#include <vector>

#include "core/arena.h"
#include "decode/engine/key_value_cache.h"
#include "decode/search/hypothesis.h"

namespace qkv {

// Throws Error, naming the option, if an option is out of range. V: size of the target vocabulary.
void check(const SearchOptions& options, int64_t V);

// Returns the maximum number of tokens of a hypothesis for a source of S tokens.
int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length);

int64_t max_tokens(const Ensemble& models, const SearchInput& input, const SearchOptions& options);

// Returns the number of hypotheses of a sentence that may be live at once. With required terms it is at least 2, so
// that one of them can have a term that the best one lacks.
inline int64_t live_hypotheses(const SearchInput& input, const SearchOptions& options) {
  if (options.sampling) return options.n_best;
  return std::max<int64_t>(options.beam, input.terms ? 2 : 1);
}

// Returns the most rows of the cache that a sentence needs.
CacheRows rows_needed(const Ensemble& models, const SearchInput& input, const SearchOptions& options);

// Throws Error for an option out of range, an id outside the vocabulary, and a prefix that is too long.
void check(const Ensemble& models, const SearchInput& input, const SearchOptions& options);

// Allocates from the arena the most that the search of a batch can need.
void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena);

}  // namespace qkv
