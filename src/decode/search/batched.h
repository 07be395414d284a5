// Search and forced scoring for any number of sentences. Batches are sorted by length; results are in the order of the
// input.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/search/forced.h"
#include "decode/search/search.h"

namespace qkv {

// Batches of sentences of similar length, longest first. A batch has at most `batch_tokens` tokens, or a single longer
// sentence.
struct Batches {
  std::vector<size_t> order;       // sentence numbers
  std::vector<size_t> ends = {0};  // batch b is order[ends[b]] … order[ends[b + 1] − 1]

  size_t size() const { return ends.size() - 1; }
  std::span<const size_t> operator[](size_t b) const {
    return std::span(order).subspan(ends[b], ends[b + 1] - ends[b]);
  }
};

// Returns the number of tokens that an encoder reads at once: as given, or for 0 as many as keep the hidden states of a
// layer in the second-level caches.
int64_t tokens_at_once(int64_t batch_tokens);

// Sorts sentences by length and groups them into batches.
Batches cut_by_length(const std::vector<int64_t>& lengths, int64_t batch_tokens);

// Searches one batch. Returns the n_best hypotheses of each sentence, best first: fewer if fewer were found, none if
// the model's output is NaN. A coverage penalty is included in the scores and the order.
std::vector<std::vector<Decoded>> n_best(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena);

// Returns n_best alternatives for each sentence of one batch. They differ in the first token after the prefix, and are
// in descending order of its probability; each is the best hypothesis that the search finds with that token.
std::vector<std::vector<Decoded>> alternatives(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                               const SearchOptions& options, Arena& arena);

// Calls n_best for any number of sentences. sources: token ids; none is empty. In a batch, the number of source tokens
// times beam is at most `batch_tokens`. done: if set, called after each batch with its number of sentences. start: the
// tokens that the decoder starts from in every sentence, as in SearchInput.
std::vector<std::vector<Decoded>> translate_ids(const Ensemble& models,
                                                const std::vector<std::vector<int32_t>>& sources,
                                                const SearchOptions& options, Arena& arena, int64_t batch_tokens = 4096,
                                                const std::function<void(int64_t)>& done = {},
                                                std::span<const int32_t> start = {});

// Allocates from the arena as much as translate_ids needs, by running the last step of every batch.
void rehearse_translation(const Ensemble& models, const std::vector<std::vector<int32_t>>& sources,
                          const SearchOptions& options, Arena& arena, int64_t batch_tokens,
                          std::span<const int32_t> start = {});

// Calls force for any number of pairs, in batches of at most `batch_tokens` source and target tokens.
std::vector<Forced> force_all(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                              WithAttention with, const AttentionPlace& place, Arena& arena,
                              int64_t batch_tokens = 4096);

}  // namespace qkv
