// Batches of parallel data under a budget of tokens. There is no padding, so pairs need not be of like length: a batch
// is a fair draw from the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/parallel_data.h"

namespace qkv {

// Batch b holds the pairs pairs[offsets[b]] … pairs[offsets[b + 1] − 1].
struct BatchList {
  std::vector<int64_t> pairs;
  std::vector<int64_t> offsets = {0};

  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  std::span<const int64_t> operator[](int64_t batch) const {
    return {pairs.data() + offsets[static_cast<size_t>(batch)], pairs.data() + offsets[static_cast<size_t>(batch) + 1]};
  }
};

// Where batches begin if each is as full as the order allows: 0, …, count. size_of(i): what number i takes of the budget.
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

// Cuts data, which must outlive it, into batches. Its methods change nothing and depend on nothing but the arguments.
class Batcher {
 public:
  // batch_tokens: the most source tokens and the most target tokens of one batch. Throws Error if there is no pair, or
  // if a pair is over the budget alone.
  Batcher(const ParallelData& data, int64_t batch_tokens, uint64_t seed);

  // Every pair once, shuffled by (seed, index), in batches as full as the order allows.
  BatchList shuffled(uint64_t index) const;

  // Every pair once, in the order of the data.
  BatchList in_order() const;

  // source = x </s>, target = <s> y, labels = y </s>
  void fill(std::span<const int64_t> pairs, Batch& batch) const;

 private:
  BatchList cut(std::vector<int64_t> pairs) const;

  const ParallelData& data_;
  int64_t batch_tokens_;
  uint64_t seed_;
};

}  // namespace qkv
