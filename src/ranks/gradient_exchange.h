// The gradients of a training step by several ranks. Every rank has sums of the gradients of its shards, the nodes of a
// tree over all shards (tree_sum.h). For each slice of the parameters, the nodes of all ranks are added in the order of
// the tree, so that the sum has the bytes that one process computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/tree_sum.h"
#include "ranks/communicator.h"
#include "ranks/slices.h"

namespace qkv {

// The parts of n shards, at least as many as ranks, that a rank computes: nodes of the tree, by rank.
std::vector<std::vector<TreeNode>> nodes_of_ranks(int64_t shards, int ranks);

// Sums gradients, bucket after bucket from the last to the first, which is the order in which a backward pass completes
// them. Exchanges while gradients of other buckets are still being computed.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // Begins a sum. `sums` are the gradients of the nodes of this rank, in the order of the tree, which must outlive it.
  virtual void begin(std::span<const std::span<float>> sums) = 0;
  // States that elements of `sums` from `first` on are complete.
  virtual void advance(int64_t first) = 0;
  // States that all are, and waits. Then the slices of this rank in the last one of `sums` are the sum of all shards.
  // Its other elements are arbitrary.
  virtual void finish() = 0;

  virtual size_t bytes() const = 0;  // of the buffers
};

// Returns how many buckets are received at the same time if each takes `bytes`: 24 MiB, or three, or all `buckets`.
size_t buckets_in_flight(size_t bytes, size_t buckets);

// Returns the exchange that needs the fewest messages: with 64 ranks or more, a power of two, that have a power of two
// shards each, halving (halving_gradients.h); otherwise the direct one (direct_gradients.h). `list` is read only now.
std::unique_ptr<GradientExchange> make_gradient_exchange(Communicator& communicator, int64_t shards,
                                                         const BucketList& list);

}  // namespace qkv
