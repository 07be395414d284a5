// The weights after a training step by several ranks: the owners of slices send what they updated directly to all
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "ranks/communicator.h"
#include "ranks/slices.h"

namespace qkv {

// Sends updated weights, bucket after bucket from the first to the last, which is the order in which a forward pass
// uses them.
class WeightExchange {
 public:
  // `list` is read only now.
  WeightExchange(Communicator& communicator, const BucketList& list, std::span<float> values);

  // Begins to send the slices of this rank, and to receive all others.
  void begin();
  // Waits until all values before `end` have arrived.
  void wait_until(int64_t end);
  // Waits for all. Must be called before values are changed.
  void finish();

 private:
  Communicator& communicator_;
  std::vector<int64_t> firsts_;               // value of each bucket
  std::vector<std::span<std::byte>> parts_;   // [buckets, ranks]
  std::deque<Communicator::Group> arriving_;  // of each bucket
  Communicator::Group sent_;
  size_t arrived_ = 0;  // buckets
};

}  // namespace qkv
