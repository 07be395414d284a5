// Batches of parallel data, limited by a number of tokens. There is no padding, so pairs need not have similar lengths,
// and a batch is a uniform sample of the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "core/to_size.h"
#include "core/vector_bytes.h"
#include "data/parallel_data.h"

namespace qkv {

// The division of pairs into batches: batch b holds pairs[offsets[b]] … pairs[offsets[b + 1] − 1].
struct BatchList {
  std::vector<int64_t> pairs;
  std::vector<int64_t> offsets = {0};

  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  size_t bytes() const { return vector_bytes(pairs) + vector_bytes(offsets); }
  std::span<const int64_t> operator[](int64_t batch) const {
    return {pairs.data() + offsets[to_size(batch)], pairs.data() + offsets[to_size(batch) + 1]};
  }
};

// Returns the index at which each batch begins, 0, …, count, if each batch is as full as the order allows. size_of(i)
// is the number of tokens of item i.
template <class SizeOf>
std::vector<int64_t> batch_offsets(int64_t count, int64_t budget, const SizeOf& size_of) {
  std::vector<int64_t> offsets = {0};
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t next = size_of(i);
    sum += next;
    if (sum <= budget) continue;
    offsets.push_back(i);
    sum = next;
  }
  offsets.push_back(count);
  return offsets;
}

// Divides parallel data, which must outlive it, into batches. Its methods depend only on their arguments and change no
// state.
class Batcher {
 public:
  // batch_tokens: the largest number of source tokens, and of target tokens, in a batch. Throws Error if there are no
  // pairs, or if a single pair exceeds batch_tokens.
  Batcher(const ParallelData& data, int64_t batch_tokens, uint64_t seed);

  // Returns every pair once, shuffled by (seed, index), in batches as full as the order allows.
  BatchList shuffled(uint64_t index) const;

  // Returns every pair once, in the order of the data.
  BatchList in_order() const;

  // Fills `batch`: source = x </s>, target = <s> y, labels = y </s>.
  void fill(std::span<const int64_t> pairs, Batch& batch) const;

 private:
  BatchList cut(std::vector<int64_t> pairs) const;

  const ParallelData& data_;
  int64_t batch_tokens_;
  uint64_t seed_;
};

}  // namespace qkv
