#include "dist/exchange.h"

#include <algorithm>
#include <optional>

#include "core/to_size.h"
#include "dist/share.h"

namespace qkv {
namespace {

constexpr int64_t kBufferElements = int64_t{1} << 22;  // of all nodes of a piece, approximately

void send_all(Communicator::Group& group, const ByteParts& parts, int to) {
  for (const auto& part : parts) group.send(part, to);
}

void receive_all(Communicator::Group& group, const ByteParts& parts, int from) {
  for (const auto& part : parts) group.receive(part, from);
}

size_t count_nodes(const std::vector<std::vector<TreeNode>>& nodes) {
  size_t count = 0;
  for (const auto& own : nodes) count += own.size();
  return count;
}

// Returns the size of a piece: whole blocks, so that all nodes of two pieces fit into the buffers.
int64_t piece_size(int64_t nodes, const std::vector<std::vector<Slice>>& slices) {
  int64_t longest = 0;
  for (const auto& own : slices)
    for (const Slice& slice : own) longest = std::max(longest, slice.size);
  const int64_t blocks = std::max<int64_t>(1, kBufferElements / nodes / kSliceBlock);
  return std::min(longest, blocks * kSliceBlock);
}

}  // namespace

void share_all(Communicator& c, const std::vector<ByteParts>& parts) {
  Communicator::Group group(c);
  for (int peer = 0; peer < c.size(); peer++)
    if (peer != c.rank()) receive_all(group, parts[to_size(peer)], peer);
  for (int k = 1; k < c.size(); k++) send_all(group, parts[to_size(c.rank())], (c.rank() + k) % c.size());
  group.wait();
}

void collect(Communicator& c, const std::vector<ByteParts>& parts) {
  Communicator::Group group(c);
  if (c.rank() > 0) send_all(group, parts[to_size(c.rank())], 0);
  for (int peer = 1; c.rank() == 0 && peer < c.size(); peer++) receive_all(group, parts[to_size(peer)], peer);
  group.wait();
}

void broadcast(Communicator& c, const ByteParts& parts) {
  Communicator::Group group(c);
  if (c.rank() > 0) receive_all(group, parts, 0);
  for (int peer = 1; c.rank() == 0 && peer < c.size(); peer++) send_all(group, parts, peer);
  group.wait();
}

std::vector<std::vector<TreeNode>> nodes_of_ranks(int64_t shards, int ranks) {
  std::vector<std::vector<TreeNode>> nodes;
  for (int rank = 0; rank < ranks; rank++) {
    const Share own = share_of(shards, rank, ranks);
    nodes.push_back(largest_nodes(shards, own.begin, own.end));
  }
  return nodes;
}

GradientExchange::GradientExchange(Communicator& communicator, int64_t shards,
                                   const std::vector<std::vector<Slice>>& slices, std::span<const int64_t> ranges)
    : communicator_(communicator),
      nodes_(nodes_of_ranks(shards, communicator.size())),
      piece_size_(piece_size(static_cast<int64_t>(count_nodes(nodes_)), slices)),
      node_count_(count_nodes(nodes_)),
      buffers_(2 * node_count_ * to_size(piece_size_)),
      tree_(shards, piece_size_) {
  for (const auto& own : slices) cut(own, ranges, piece_size_);
}

void GradientExchange::cut(const std::vector<Slice>& slices, std::span<const int64_t> ranges, int64_t most) {
  Pieces& pieces = pieces_.emplace_back();
  for (const Slice& slice : slices)
    for (int64_t at = 0; at < slice.size; at += most)
      pieces.push_back({ranges[to_size(slice.range)] + slice.first + at, std::min(most, slice.size - at)});
  most_pieces_ = std::max(most_pieces_, pieces.size());
}

std::span<float> GradientExchange::buffer(size_t piece, size_t node) {
  const size_t size = to_size(piece_size_);
  return std::span(buffers_).subspan((piece % 2 * node_count_ + node) * size, size);
}

// Begins to receive the nodes of all ranks for a piece of this rank, and to send this rank's nodes for a piece of each
// other rank.
void GradientExchange::begin(Communicator::Group& group, size_t piece, std::span<const std::span<float>> sums) {
  const int rank = communicator_.rank(), size = communicator_.size();
  const Pieces& own = pieces_[to_size(rank)];
  size_t node = 0;
  for (int peer = 0; peer < size; peer++)
    for (size_t i = 0; i < nodes_[to_size(peer)].size(); i++, node++)
      if (peer != rank && piece < own.size())
        group.receive(std::as_writable_bytes(buffer(piece, node).first(to_size(own[piece].size))), peer);
  for (int k = 1; k < size; k++) {
    const int peer = (rank + k) % size;
    if (const Pieces& other = pieces_[to_size(peer)]; piece < other.size())
      for (const auto& sum : sums)
        group.send(std::as_bytes(sum.subspan(to_size(other[piece].first), to_size(other[piece].size))), peer);
  }
}

// Adds the nodes of a piece of this rank, which have arrived.
void GradientExchange::finish(size_t piece, std::span<const std::span<float>> sums) {
  const int rank = communicator_.rank();
  const Pieces& own = pieces_[to_size(rank)];
  if (piece >= own.size()) return;
  const size_t first = to_size(own[piece].first), size = to_size(own[piece].size);
  size_t node = 0;
  for (int peer = 0; peer < communicator_.size(); peer++)
    for (size_t i = 0; i < nodes_[to_size(peer)].size(); i++, node++) {
      const std::span<float> sum = buffer(piece, node);
      if (peer == rank) std::ranges::copy(sums[i].subspan(first, size), sum.begin());
      tree_.add(sum, nodes_[to_size(peer)][i].count);
    }
  std::ranges::copy(buffer(piece, node - 1).first(size), &sums.back()[first]);
}

void GradientExchange::sum(std::span<const std::span<float>> sums) {
  std::array<std::optional<Communicator::Group>, 2> groups;
  for (size_t piece = 0; piece <= most_pieces_; piece++) {
    if (piece < most_pieces_) begin(groups[piece % 2].emplace(communicator_), piece, sums);
    if (piece == 0) continue;
    groups[(piece - 1) % 2]->wait();
    finish(piece - 1, sums);
  }
}

size_t GradientExchange::bytes() const { return buffers_.size() * sizeof buffers_[0] + tree_.bytes(); }

}  // namespace qkv
