// Beam search over any number of sentences: sorted by length, in batches, results in the order of the input.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/beam_search.h"

namespace qkv {

// sources: token ids, each ending with the end token; none is empty. Batches hold sentences of similar length, the
// longest first, and at most `batch_tokens` source tokens times beam. Called with n after every n sentences done, if
// set.
std::vector<std::vector<Hypothesis>> translate_ids(const Transformer<float>& model,
                                                   const std::vector<std::vector<int32_t>>& sources,
                                                   const SearchOptions& options, Arena& arena,
                                                   int64_t batch_tokens = 4096,
                                                   const std::function<void(int64_t)>& done = {});

// Takes from the arena what translate_ids will: runs the last step of every batch.
void rehearse_translation(const Transformer<float>& model, const std::vector<std::vector<int32_t>>& sources,
                          const SearchOptions& options, Arena& arena, int64_t batch_tokens);

}  // namespace qkv
