// The gradients of a training step by several ranks. Every rank has sums of the gradients of its shards, the nodes of a
// tree over all shards (tree_sum.h). They are sent directly between all pairs of ranks at once: the owner of a slice of
// the parameters receives the nodes of all others for it, and adds them in the order of the tree, so that the sum has
// the bytes that one process computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/to_size.h"
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
  // `list` is read only now.
  GradientExchange(Communicator& communicator, int64_t shards, const BucketList& list);

  // Begins a sum. `sums` are the gradients of the nodes of this rank, in the order of the tree, which must outlive it.
  void begin(std::span<const std::span<float>> sums);
  // States that elements of `sums` from `first` on are complete.
  void advance(int64_t first);
  // States that all are, and waits. Then the slices of this rank in the last one of `sums` are the sum of all shards.
  // Its other elements are arbitrary.
  void finish();

  size_t bytes() const;  // of the buffers

 private:
  struct Piece {
    int64_t first = 0, size = 0;  // elements of a gradient
  };
  // A bucket, and the slices of it that ranks own.
  struct Round {
    int64_t first = 0;
    std::vector<Piece> pieces;  // by rank
  };
  std::vector<Round> rounds_of(const BucketList& list) const;
  int64_t largest_piece() const;
  void receive();
  void send();
  void add();
  std::span<float> buffer(size_t round, size_t node);
  const Piece& own(size_t round) const { return rounds_[round].pieces[to_size(communicator_.rank())]; }

  Communicator& communicator_;
  std::vector<std::vector<TreeNode>> nodes_;  // by rank
  size_t node_count_ = 0;                     // of all ranks
  std::vector<Round> rounds_;
  int64_t largest_ = 0;         // piece of this rank
  size_t in_flight_ = 0;        // rounds that are received at the same time
  std::vector<float> buffers_;  // [rounds in flight, nodes, largest piece]
  TreeSum tree_;
  std::deque<Communicator::Group> arriving_;  // by place of a round in the buffers
  Communicator::Group sent_;
  std::span<const std::span<float>> sums_;
  size_t received_ = 0, sending_ = 0, added_ = 0;  // rounds whose transfers have begun, and that were added
};

}  // namespace qkv
