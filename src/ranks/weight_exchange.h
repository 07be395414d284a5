// The weights after a training step by several ranks: the owners of slices send what they updated to all others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ranks/communicator.h"
#include "ranks/slices.h"

namespace qkv {

// Sends updated weights, bucket after bucket from the first to the last, which is the order in which a forward pass
// uses them.
class WeightExchange {
 public:
  virtual ~WeightExchange() = default;

  // Begins to send the slices of this rank, and to receive all others.
  virtual void begin() = 0;
  // Waits until all values before `end` have arrived.
  virtual void wait_until(int64_t end) = 0;
  // Waits for all. Must be called before values are changed.
  virtual void finish() = 0;
};

// Returns the exchange that needs the fewest messages: direct (direct_weights.h), or by doubling (doubling_weights.h)
// if halves(ranks). `list` is read only now.
std::unique_ptr<WeightExchange> make_weight_exchange(Communicator& communicator, const BucketList& list,
                                                     std::span<float> values);

}  // namespace qkv
