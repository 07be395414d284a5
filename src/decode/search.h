// Beam search, greedy search and sampling for batches of sentences, with cached keys and values. docs/decoding.md
// describes the algorithm.
#pragma once

#include <vector>

#include "core/arena.h"
#include "decode/ensemble.h"
#include "decode/hypothesis.h"

namespace qkv {

// Throws Error, naming the option, if an option is out of range. V: size of the target vocabulary.
void check(const SearchOptions& options, int64_t V);

// Returns the maximum number of tokens of a hypothesis for a source of S tokens.
int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length);

// Returns all finished hypotheses of each input, best first: about `beam` for beam search, n_best for sampling, none if
// the model's output is NaN. Scores exclude the coverage penalty, which only keeps the search from stopping early.
// Throws Error if an id is outside the vocabulary, or a prefix is too long.
std::vector<std::vector<Decoded>> search(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena);

// Allocates from the arena the most that search can need, by running one step with every hypothesis live and of maximum
// length. The computed values are meaningless.
void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena);

}  // namespace qkv
