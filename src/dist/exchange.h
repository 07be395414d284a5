// The exchange of a training step between ranks. Every rank has sums of the gradients of its shards, the nodes of a
// tree over all shards (tree_sum.h). The owner of a slice of the parameters gets the nodes of all ranks for this slice
// and adds them in the order of the tree, so that the sum has the bytes that one process computes. Bytes are sent
// directly between all pairs of ranks at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dist/communicator.h"
#include "dist/slices.h"
#include "dist/tree_sum.h"

namespace qkv {

// Bytes of one rank, in parts.
using ByteParts = std::vector<std::span<std::byte>>;

// Sends the parts of this rank to all others and receives theirs. All ranks give parts of the same sizes, by rank.
void share_all(Communicator& communicator, const std::vector<ByteParts>& parts);

// The same to rank 0 only. Another rank gives its own parts; the others may be empty.
void collect(Communicator& communicator, const std::vector<ByteParts>& parts);

// Sends parts of rank 0 to all others, which receive them.
void broadcast(Communicator& communicator, const ByteParts& parts);

// The parts of n shards, at least as many as ranks, that a rank computes: nodes of the tree, by rank.
std::vector<std::vector<TreeNode>> nodes_of_ranks(int64_t shards, int ranks);

// Sums gradients. Ranges of parameters begin at the given elements of each gradient.
class GradientExchange {
 public:
  // `slices` are those of each rank, at most one of a range.
  GradientExchange(Communicator& communicator, int64_t shards, const std::vector<std::vector<Slice>>& slices,
                   std::span<const int64_t> ranges);

  // Nodes of this rank, in the order of the tree.
  const std::vector<TreeNode>& nodes() const { return nodes_[static_cast<size_t>(communicator_.rank())]; }
  // `sums` are the gradients of these nodes. Sets the slices of this rank in the last one to the sum of all shards, and
  // leaves its other elements as they are.
  void sum(std::span<const std::span<float>> sums);
  size_t bytes() const;  // of the buffers

 private:
  struct Piece {
    int64_t first = 0, size = 0;  // elements of a gradient
  };
  using Pieces = std::vector<Piece>;

  void cut(const std::vector<Slice>& slices, std::span<const int64_t> ranges, int64_t most);
  void begin(Communicator::Group& group, size_t piece, std::span<const std::span<float>> sums);
  void finish(size_t piece, std::span<const std::span<float>> sums);
  std::span<float> buffer(size_t piece, size_t node);

  Communicator& communicator_;
  std::vector<std::vector<TreeNode>> nodes_;
  std::vector<Pieces> pieces_;  // of the slices of each rank
  size_t most_pieces_ = 0;      // of a rank
  int64_t piece_size_ = 0;      // of the largest piece
  size_t node_count_ = 0;       // of all ranks
  std::vector<float> buffers_;  // [2, nodes, piece size]: of two pieces, of which one is received
  TreeSum tree_;
};

}  // namespace qkv
