// Sums in an order that is fixed by the number of leaves alone, so that they have the same bits whoever adds up which
// part. Leaves are added as a binary tree:
//   sum(b, 1) = leaf b
//   sum(b, n) = sum(b, h) + sum(b + h, n − h),   h = the largest power of two below n
// Any range of leaves consists of a few whole nodes of this tree. A rank adds up the leaves of each of its nodes; the
// owner of the sum adds the nodes of all ranks.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/to_size.h"

namespace qkv {

// Returns the number of leaves on the left of the root; n is at least 2.
inline int64_t left_leaves(int64_t n) { return static_cast<int64_t>(std::bit_floor(to_size(n - 1))); }

// Returns the number of sums that have to be kept while n leaves are added one after the other: ⌈log₂ n⌉.
inline int64_t kept_sums(int64_t n) { return std::bit_width(to_size(n - 1)); }

// Returns the sum of all leaves, at least one, by the definition.
template <class T>
T tree_sum(std::span<const T> leaves) {
  if (leaves.size() == 1) return leaves.front();
  const size_t left = to_size(left_leaves(std::ssize(leaves)));
  T sum = tree_sum(leaves.first(left));
  sum += tree_sum(leaves.subspan(left));
  return sum;
}

// The node that sums the leaves first … first + count − 1.
struct TreeNode {
  int64_t first = 0, count = 0;
};

// Returns the largest nodes of a tree of n leaves that together have the leaves begin … end − 1, in this order.
std::vector<TreeNode> largest_nodes(int64_t n, int64_t begin, int64_t end);

// The sum of the arrays of n leaves, which come one after the other, in kept_sums(n) buffers. Additions are in float32
// and flush denormals; a single leaf stays as it is. Not thread-safe. Uses all threads internally.
class TreeSum {
 public:
  TreeSum(int64_t leaves, int64_t size);

  // Takes the sum of the next `count` leaves, which must be a node of the tree. Afterwards `sum` holds zeros or, after
  // the last leaf, the sum of all leaves; then the next sum begins.
  void add(std::span<float> sum, int64_t count = 1);

  // Instead of add() for the node that ends with the last leaf: completes elements [begin, end) of the sum. After all
  // elements, restart() begins the next sum.
  void complete(std::span<float> sum, int64_t begin, int64_t end);
  void restart() { taken_ = 0; }

  // Sets the number of leaves of the next sums, at most that of the constructor. No sum may be incomplete.
  void set_leaves(int64_t leaves) { leaves_ = leaves; }

  size_t bytes() const { return nodes_.size() * sizeof nodes_[0]; }  // of the buffers

 private:
  float* node(int level) { return nodes_.data() + level * size_; }
  void add_kept(uint64_t levels, std::span<float> sum, int64_t begin, int64_t end);

  int64_t leaves_, size_;
  std::vector<float> nodes_;  // [levels, size]: at level l a node of 2^l leaves, if bit l of taken_ is set
  int64_t taken_ = 0;         // leaves
};

}  // namespace qkv
