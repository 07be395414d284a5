#include "data/batcher.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/fail.h"
#include "core/random.h"
#include "core/to_size.h"

namespace qkv {
namespace {

struct Tokens {
  int64_t source = 0, target = 0;

  int64_t larger() const { return std::max(source, target); }
};

Tokens tokens_of(const ParallelData& data, int64_t pair) {
  return {static_cast<int64_t>(data.source(pair).size()), static_cast<int64_t>(data.target(pair).size()) - 1};
}

}  // namespace

Batcher::Batcher(const ParallelData& data, int64_t batch_tokens, uint64_t seed)
    : data_(data), batch_tokens_(batch_tokens), seed_(seed) {
  if (data.size() == 0)
    fail("batches: no usable sentence pairs ({} empty, {} too long)", data.skipped().empty, data.skipped().too_long);
  if (batch_tokens < data.longest() || batch_tokens > std::numeric_limits<int32_t>::max())
    fail("batches: batch_tokens must be between {}, the longest sequence, and 2^31 - 1 (is {})", data.longest(),
         batch_tokens);
}

BatchList Batcher::shuffled(uint64_t index) const {
  std::vector<int64_t> pairs(to_size(data_.size()));
  std::iota(pairs.begin(), pairs.end(), 0);
  Random(seed_, Stream::shuffle, index).shuffle(pairs);
  return cut(std::move(pairs));
}

BatchList Batcher::in_order() const {
  std::vector<int64_t> pairs(to_size(data_.size()));
  std::iota(pairs.begin(), pairs.end(), 0);
  return cut(std::move(pairs));
}

void Batcher::fill(std::span<const int64_t> pairs, Batch& batch) const {
  batch.clear();
  for (const int64_t pair : pairs) {
    const std::span<const int32_t> target = data_.target(pair);
    batch.source.append(data_.source(pair));
    batch.target.append(target.first(target.size() - 1));
    batch.labels.insert(batch.labels.end(), target.begin() + 1, target.end());
  }
}

// A batch ends where the next pair would exceed the limit on either side.
BatchList Batcher::cut(std::vector<int64_t> pairs) const {
  BatchList list;
  Tokens sum;
  for (size_t i = 0; i < pairs.size(); i++) {
    const Tokens next = tokens_of(data_, pairs[i]);
    sum = {sum.source + next.source, sum.target + next.target};
    if (sum.larger() > batch_tokens_) {
      list.offsets.push_back(static_cast<int64_t>(i));
      sum = next;
    }
  }
  list.offsets.push_back(static_cast<int64_t>(pairs.size()));
  list.pairs = std::move(pairs);
  return list;
}

}  // namespace qkv
