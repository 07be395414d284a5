// Batches of texts of similar length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace qkv
