// Searches for what a model says: beam search, greedy search and sampling, many sentences at once, with cached keys and
// values. docs/decoding.md describes the algorithm.
#pragma once

#include <vector>

#include "core/arena.h"
#include "decode/ensemble.h"
#include "decode/hypothesis.h"

namespace qkv {

// Throws Error, naming the option, for one that is out of range; `V` is the size of the target vocabulary.
void check(const SearchOptions& options, int64_t V);

// The most tokens that a hypothesis of a source of S tokens may have.
int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length);

// All hypotheses that finished, best first: of beam search about `beam`, of sampling n_best, none where the model gives
// no number (NaN). The coverage penalty is not in their scores; it only keeps the search from stopping early. Throws
// Error if an id does not fit the model, or a prefix leaves no room.
std::vector<std::vector<Decoded>> search(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena);

// Takes from the arena the most that search can: a step with every hypothesis alive and at its longest. What it
// computes has no meaning.
void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena);

}  // namespace qkv
