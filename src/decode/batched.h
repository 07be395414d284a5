// Search and forced scoring over any number of sentences: sorted by length, in batches, results in the order of the
// input.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/forced.h"
#include "decode/search.h"

namespace qkv {

// Sentences of similar length together, the longest first; each batch has at most `batch_tokens` of their tokens, or
// one sentence.
struct Batches {
  std::vector<size_t> order;       // of the sentences
  std::vector<size_t> ends = {0};  // batch b is order[ends[b]] … order[ends[b + 1] − 1]

  size_t size() const { return ends.size() - 1; }
  std::span<const size_t> operator[](size_t b) const {
    return std::span(order).subspan(ends[b], ends[b + 1] - ends[b]);
  }
};
Batches cut_by_length(const std::vector<int64_t>& lengths, int64_t batch_tokens);

// The n_best hypotheses of each sentence of one batch, best first: fewer where fewer were found, none where the model
// gives no number. With a coverage penalty they are ordered by the scores with it.
std::vector<std::vector<Decoded>> n_best(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena);

// The alternatives of one batch: n_best hypotheses of each sentence, that go on from the prefix with different tokens,
// the most probable of them first; each is the best that the search finds after it.
std::vector<std::vector<Decoded>> alternatives(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                               const SearchOptions& options, Arena& arena);

// n_best over any number of sentences. sources: token ids; none is empty. A batch has at most `batch_tokens` source
// tokens times beam. Called with n after every n sentences done, if set.
std::vector<std::vector<Decoded>> translate_ids(const Ensemble& models,
                                                const std::vector<std::vector<int32_t>>& sources,
                                                const SearchOptions& options, Arena& arena, int64_t batch_tokens = 4096,
                                                const std::function<void(int64_t)>& done = {});

// Takes from the arena what translate_ids will: runs the last step of every batch.
void rehearse_translation(const Ensemble& models, const std::vector<std::vector<int32_t>>& sources,
                          const SearchOptions& options, Arena& arena, int64_t batch_tokens);

// force() over any number of pairs, in batches of at most `batch_tokens` tokens of both sides.
std::vector<Forced> force_all(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                              WithAttention with, const AttentionPlace& place, Arena& arena,
                              int64_t batch_tokens = 4096);

}  // namespace qkv
