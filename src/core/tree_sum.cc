#include "core/tree_sum.h"

#include <algorithm>

#include "core/system/threads.h"

namespace qkv {
namespace {

constexpr int64_t kSumBlock = 1 << 14;

void append_nodes(TreeNode node, int64_t begin, int64_t end, std::vector<TreeNode>& nodes) {
  const int64_t node_end = node.first + node.count;
  if (end <= node.first || node_end <= begin) return;
  if (begin <= node.first && node_end <= end) return nodes.push_back(node);
  const int64_t left = left_leaves(node.count);
  append_nodes({node.first, left}, begin, end, nodes);
  append_nodes({node.first + left, node.count - left}, begin, end, nodes);
}

}  // namespace

std::vector<TreeNode> largest_nodes(int64_t n, int64_t begin, int64_t end) {
  std::vector<TreeNode> nodes;
  append_nodes({0, n}, begin, end, nodes);
  return nodes;
}

TreeSum::TreeSum(int64_t leaves, int64_t size)
    : leaves_(leaves), size_(size), nodes_(to_size(kept_sums(leaves) * size)) {}

// Adds the kept nodes of these levels, the smallest first, each on the left.
void TreeSum::add_kept(uint64_t levels, std::span<float> sum, int64_t begin, int64_t end) {
  for (; levels != 0; levels &= levels - 1) {
    const float* left = node(std::countr_zero(levels));
    for (int64_t i = begin; i < end; i++) sum[to_size(i)] = left[i] + sum[to_size(i)];
  }
}

// The bits of taken_ are the nodes that wait for their right-hand sides. Adding the count of a new node to taken_
// clears the bits of the nodes that it completes.
void TreeSum::add(std::span<float> sum, int64_t count) {
  if (taken_ + count == leaves_) {
    complete(sum, 0, size_);
    return restart();
  }
  const uint64_t before = to_size(taken_), after = to_size(taken_ + count);
  float* kept = node(std::countr_zero(after & ~before));
  taken_ += count;
  parallel_blocks(size_, kSumBlock, [&](int64_t begin, int64_t end) {
    add_kept(before & ~after, sum, begin, end);
    std::copy(&sum[to_size(begin)], sum.data() + end, kept + begin);
    std::fill(&sum[to_size(begin)], sum.data() + end, 0.0f);
  });
}

// The last node completes all that wait.
void TreeSum::complete(std::span<float> sum, int64_t begin, int64_t end) {
  if (taken_ == 0) return;
  parallel_blocks(end - begin, kSumBlock,
                  [&](int64_t from, int64_t to) { add_kept(to_size(taken_), sum, begin + from, begin + to); });
}

}  // namespace qkv
