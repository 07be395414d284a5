// Gradients that are sent directly between all pairs of ranks at once: the owner of a slice receives the nodes of all
// others for it, and adds them.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "core/to_size.h"
#include "ranks/gradient_exchange.h"

namespace qkv {

class DirectGradients : public GradientExchange {
 public:
  DirectGradients(Communicator& communicator, int64_t shards, const BucketList& list);

  void begin(std::span<const std::span<float>> sums) override;
  void advance(int64_t first) override;
  void finish() override;
  size_t bytes() const override;

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
