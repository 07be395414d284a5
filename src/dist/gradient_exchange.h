// The gradients of a training step by several ranks. Every rank has sums of the gradients of its shards, the nodes of a
// tree over all shards (tree_sum.h). The owner of a slice of the parameters gets the nodes of all ranks for this slice
// and adds them in the order of the tree, so that the sum has the bytes that one process computes. Bytes are sent
// directly between all pairs of ranks at once.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/to_size.h"
#include "dist/communicator.h"
#include "dist/slices.h"
#include "dist/tree_sum.h"

namespace qkv {

// The parts of n shards, at least as many as ranks, that a rank computes: nodes of the tree, by rank.
std::vector<std::vector<TreeNode>> nodes_of_ranks(int64_t shards, int ranks);

// Sums gradients, bucket after bucket from the last to the first, which is the order in which a backward pass completes
// them. Exchanges while gradients of other buckets are still being computed.
class GradientExchange {
 public:
  // `buckets` are those of all parameters. Their ranges begin at the elements `ranges` of each gradient.
  GradientExchange(Communicator& communicator, int64_t shards, std::span<const Slice> buckets,
                   std::span<const int64_t> ranges);

  // Nodes of this rank, in the order of the tree.
  const std::vector<TreeNode>& nodes() const { return nodes_[to_size(communicator_.rank())]; }

  // Begins a sum. `sums` are the gradients of these nodes, which must outlive it.
  void begin(std::span<const std::span<float>> sums);
  // States that elements of `sums` from `first` on are complete.
  void advance(int64_t first);
  // States that all are, and waits. Then the slices of this rank in the last one of `sums` are the sum of all shards,
  // and its other elements are as they were.
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
  static constexpr size_t kInFlight = 3;  // rounds that are received at the same time

  std::vector<Round> rounds_of(std::span<const Slice> buckets, std::span<const int64_t> ranges) const;
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
  std::vector<float> buffers_;  // [rounds in flight, nodes, largest piece]
  TreeSum tree_;
  std::deque<Communicator::Group> arriving_;  // by place of a round in the buffers
  Communicator::Group sent_;
  std::span<const std::span<float>> sums_;
  size_t received_ = 0, sending_ = 0, added_ = 0;  // rounds whose transfers have begun, and that were added
};

}  // namespace qkv
