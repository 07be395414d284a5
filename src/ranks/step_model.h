// The time of a training step by several ranks, computed from what one machine and the network need.
#pragma once

#include <cstdint>

namespace qkv {

// Times of one machine, and sizes of a model.
struct StepCosts {
  double shard = 0;   // seconds of the passes of a shard
  double update = 0;  // seconds of the optimizer for all parameters
  int64_t parameters = 0;
  double embedding_share = 0;  // of the parameters: they are used first, and their gradients are complete last
  double spread = 0;           // standard deviation of the time of a shard, relative to it
};

struct Network {
  double bytes_per_second = 0;  // that a rank sends and receives, each
  double message_seconds = 0;   // of a rank, to send a message and to receive one
};

// Returns the seconds of a step with this number of shards, at least as many as ranks. The slowest rank has the most
// shards, and n shards take √(2 ln R / n) standard deviations longer than their mean. Gradients are exchanged during
// the backward pass, 2/3 of a shard, and weights during the forward pass, 1/3, unless `overlaps` is false.
double step_seconds(const StepCosts& costs, const Network& network, int64_t shards, int64_t ranks,
                    bool overlaps = true);

}  // namespace qkv
