// Search and forced scoring for any number of sentences. Batches are sorted by length; results are in the order of the
// input.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/search/sentence_decoder.h"

namespace qkv {

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

}  // namespace qkv
