// Weights that are sent directly from each rank to all others.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "ranks/weight_exchange.h"

namespace qkv {

class DirectWeights : public WeightExchange {
 public:
  DirectWeights(Communicator& communicator, const BucketList& list, std::span<float> values);

  void begin() override;
  void wait_until(int64_t end) override;
  void finish() override;

 private:
  Communicator& communicator_;
  std::vector<int64_t> firsts_;               // value of each bucket
  std::vector<std::span<std::byte>> parts_;   // [buckets, ranks]
  std::deque<Communicator::Group> arriving_;  // of each bucket
  Communicator::Group sent_;
  size_t arrived_ = 0;  // buckets
};

}  // namespace qkv
