// Weights of 2^k ranks. Each rank exchanges its slice of a bucket with rank xor 2^(k − 1), then both slices with
// rank xor 2^(k − 2), and so on, until all have the bucket.
#pragma once

#include <span>
#include <vector>

#include "ranks/halved_parts.h"
#include "ranks/pairwise_rounds.h"
#include "ranks/weight_exchange.h"

namespace qkv {

class DoublingWeights : public WeightExchange {
 public:
  DoublingWeights(Communicator& communicator, const BucketList& list, std::span<float> values);

  void begin() override;
  void wait_until(int64_t end) override;
  void finish() override;

 private:
  void advance(size_t buckets, bool waits);

  Communicator& communicator_;
  std::span<float> values_;
  int levels_;
  std::vector<std::vector<HalvedPart>> parts_;  // [buckets][levels of halving]
  std::vector<int64_t> firsts_;                 // value of each bucket
  PairwiseRounds rounds_;
  Communicator::Group sent_;
};

}  // namespace qkv
