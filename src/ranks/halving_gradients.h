// Gradients of 2^k ranks, each of which has one node of the tree. A rank sends half of a bucket to rank xor 1 and adds
// the other half of its node, then a quarter to rank xor 2, and so on: these are the sums of the tree, from the leaves
// to the root.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ranks/gradient_exchange.h"
#include "ranks/halved_parts.h"
#include "ranks/pairwise_rounds.h"

namespace qkv {

class HalvingGradients : public GradientExchange {
 public:
  HalvingGradients(Communicator& communicator, const BucketList& list);

  void begin(std::span<const std::span<float>> sums) override;
  void advance(int64_t first) override;
  void finish() override;
  size_t bytes() const override { return buffers_.size() * sizeof buffers_[0]; }

 private:
  void begin_level(size_t round, int level, Communicator::Group& arriving);
  void end_level(size_t round, int level);
  void advance(int64_t first, bool waits);
  std::span<float> buffer(size_t round, int level);

  Communicator& communicator_;
  int levels_;
  std::vector<std::vector<HalvedPart>> parts_;  // [rounds][levels]
  std::vector<int64_t> firsts_;                 // element of each round
  size_t largest_ = 0;                          // part
  std::vector<float> buffers_;                  // [rounds in flight, largest part]
  std::optional<PairwiseRounds> rounds_;
  Communicator::Group sent_;
  std::span<float> sum_;
};

}  // namespace qkv
