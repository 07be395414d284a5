#include "ranks/gradient_exchange.h"

#include <algorithm>

namespace qkv {
namespace {

size_t count_nodes(const std::vector<std::vector<TreeNode>>& nodes) {
  size_t count = 0;
  for (const auto& own : nodes) count += own.size();
  return count;
}

// Returns how many buckets are received at the same time if each takes `bytes`: 24 MiB, or three, or all `buckets`.
size_t buckets_in_flight(size_t bytes, size_t buckets) {
  constexpr size_t kBytes = size_t{24} << 20, kLeast = 3;
  return std::min(buckets, std::max(kLeast, kBytes / std::max<size_t>(bytes, 1)));
}

}  // namespace

std::vector<std::vector<TreeNode>> nodes_of_ranks(int64_t shards, int ranks) {
  std::vector<std::vector<TreeNode>> nodes;
  for (int rank = 0; rank < ranks; rank++) {
    const EvenSlice own = even_slice(shards, rank, ranks);
    nodes.push_back(largest_nodes(shards, own.begin, own.end));
  }
  return nodes;
}

GradientExchange::GradientExchange(Communicator& communicator, int64_t shards, const BucketList& list)
    : communicator_(communicator),
      nodes_(nodes_of_ranks(shards, communicator.size())),
      node_count_(count_nodes(nodes_)),
      rounds_(rounds_of(list)),
      largest_(largest_piece()),
      in_flight_(buckets_in_flight(node_count_ * to_size(largest_) * sizeof(float), rounds_.size())),
      buffers_(in_flight_ * node_count_ * to_size(largest_)),
      tree_(shards, largest_),
      sent_(communicator) {
  for (size_t i = 0; i < in_flight_; i++) arriving_.emplace_back(communicator);
}

std::vector<GradientExchange::Round> GradientExchange::rounds_of(const BucketList& list) const {
  std::vector<Round> rounds;
  for (auto bucket = list.buckets.rbegin(); bucket != list.buckets.rend(); ++bucket) {
    Round& round = rounds.emplace_back(Round{list.first(*bucket), {}});
    for (int rank = 0; rank < communicator_.size(); rank++) {
      const Slice slice = slice_of(*bucket, rank, communicator_.size());
      round.pieces.push_back({list.first(slice), slice.size});
    }
  }
  return rounds;
}

int64_t GradientExchange::largest_piece() const {
  int64_t largest = 0;
  for (size_t round = 0; round < rounds_.size(); round++) largest = std::max(largest, own(round).size);
  return largest;
}

std::span<float> GradientExchange::buffer(size_t round, size_t node) {
  return std::span(buffers_).subspan((round % in_flight_ * node_count_ + node) * to_size(largest_), to_size(largest_));
}

// Begins to receive the nodes of all other ranks for the piece of this rank.
void GradientExchange::receive() {
  const size_t round = received_++, size = to_size(own(round).size);
  size_t node = 0;
  for (int peer = 0; peer < communicator_.size(); peer++)
    for (size_t i = 0; i < nodes_[to_size(peer)].size(); i++, node++)
      if (peer != communicator_.rank())
        arriving_[round % in_flight_].receive(std::as_writable_bytes(buffer(round, node).first(size)), peer);
}

// Begins to send the nodes of this rank for the pieces of all other ranks.
void GradientExchange::send() {
  const Round& round = rounds_[sending_++];
  for (int k = 1; k < communicator_.size(); k++) {
    const int peer = (communicator_.rank() + k) % communicator_.size();
    const Piece& piece = round.pieces[to_size(peer)];
    for (const auto& sum : sums_)
      sent_.send(std::as_bytes(sum.subspan(to_size(piece.first), to_size(piece.size))), peer);
  }
}

// Adds the nodes for the piece of this rank, which have arrived.
void GradientExchange::add() {
  const size_t round = added_++, first = to_size(own(round).first), size = to_size(own(round).size);
  size_t node = 0;
  for (int peer = 0; size > 0 && peer < communicator_.size(); peer++)
    for (size_t i = 0; i < nodes_[to_size(peer)].size(); i++, node++) {
      const std::span<float> sum = buffer(round, node);
      if (peer == communicator_.rank()) std::ranges::copy(sums_[i].subspan(first, size), sum.begin());
      tree_.add(sum, nodes_[to_size(peer)][i].count);
    }
  if (size > 0) std::ranges::copy(buffer(round, node - 1).first(size), &sums_.back()[first]);
  if (received_ < rounds_.size()) receive();
}

void GradientExchange::begin(std::span<const std::span<float>> sums) {
  sums_ = sums;
  received_ = sending_ = added_ = 0;
  while (received_ < in_flight_) receive();
}

void GradientExchange::advance(int64_t first) {
  while (sending_ < rounds_.size() && rounds_[sending_].first >= first) send();
  while (added_ < sending_ && arriving_[added_ % in_flight_].ended()) add();
}

void GradientExchange::finish() {
  advance(0);
  while (added_ < rounds_.size()) {
    arriving_[added_ % in_flight_].wait();
    add();
  }
  sent_.wait();
}

size_t GradientExchange::bytes() const { return buffers_.size() * sizeof buffers_[0] + tree_.bytes(); }

}  // namespace qkv
