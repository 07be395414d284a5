// The sums of any division of the leaves have the bytes of the definition.
#include "core/tree_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/random.h"
#include "core/system/threads.h"
#include "ranks/slices.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::with_threads;

constexpr int64_t kMostLeaves = 33;
using Leaves = std::vector<std::vector<float>>;

// Numbers whose sum depends on the order: of many magnitudes, and columns of zeros of both signs, of denormal numbers,
// and of normal numbers that cancel to denormal ones.
Leaves random_leaves(int64_t n) {
  Random random(static_cast<uint64_t>(n), Stream::test);
  const float least = std::numeric_limits<float>::min();
  Leaves leaves;
  for (int64_t i = 0; i < n; i++) {
    std::vector<float>& leaf = leaves.emplace_back();
    for (int64_t j = 0; j < 20; j++)
      leaf.push_back(std::ldexp(static_cast<float>(random.normal()), static_cast<int>(random.below(40)) - 20));
    leaf.push_back(-0.0f);
    leaf.push_back(random.below(2) == 0 ? 0.0f : -0.0f);
    leaf.push_back(least * static_cast<float>(random.uniform() - 0.5));
    leaf.push_back(least * static_cast<float>(2 * random.uniform() - 1));
    leaf.push_back(i % 2 == 0 ? 1.5f * least : -1.25f * least);
  }
  return leaves;
}

std::vector<float> expected_sum(const Leaves& leaves) {
  const FlushDenormals flush;
  std::vector<float> sum;
  for (size_t j = 0; j < leaves.front().size(); j++) {
    std::vector<float> column;
    for (const std::vector<float>& leaf : leaves) column.push_back(leaf[j]);
    sum.push_back(tree_sum<float>(column));
  }
  return sum;
}

// Returns the sum of the leaves of a node as one rank computes it.
std::vector<float> node_sum(const Leaves& leaves, TreeNode node) {
  TreeSum sum(node.count, std::ssize(leaves.front()));
  std::vector<float> leaf;
  for (int64_t i = 0; i < node.count; i++) {
    leaf = leaves[to_size(node.first + i)];
    sum.add(leaf);
  }
  return leaf;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

// Returns the sum of an owner that receives the nodes of the ranges between the cuts.
std::vector<float> sum_of_ranges(const Leaves& leaves, const std::vector<int64_t>& cuts) {
  const int64_t n = std::ssize(leaves);
  TreeSum owner(n, std::ssize(leaves.front()));
  std::vector<float> sum;
  for (size_t r = 0; r + 1 < cuts.size(); r++)
    for (const TreeNode node : largest_nodes(n, cuts[r], cuts[r + 1])) {
      sum = node_sum(leaves, node);
      owner.add(sum, node.count);
    }
  return sum;
}

TEST(TreeSum, IsTheRecursiveDefinition) {
  const std::vector<float> seven = {1, 2, 3, 4, 0x1p24f, 0x1p-1f, 0x1p-1f};
  // (1 + 2) + (3 + 4) = 10; (2^24 + ½) + ½ = 2^24, the half rounds to even twice; both = 2^24 + 10.
  EXPECT_EQ(tree_sum<float>(seven), 0x1p24f + 10);
  EXPECT_EQ(left_leaves(2), 1);
  EXPECT_EQ(left_leaves(7), 4);
  EXPECT_EQ(left_leaves(8), 4);
  EXPECT_EQ(left_leaves(9), 8);
}

TEST(TreeSum, OfLeavesOneByOneHasTheBytesOfTheDefinition) {
  for (int64_t n = 1; n <= kMostLeaves; n++) {
    const Leaves leaves = random_leaves(n);
    EXPECT_TRUE(same_bytes(node_sum(leaves, {0, n}), expected_sum(leaves))) << n;
  }
}

// With two cuts, at every place; and with many, at random places.
TEST(TreeSum, OfAnyRangesHasTheBytesOfTheDefinition) {
  Random random(1, Stream::test);
  for (int64_t n = 1; n <= kMostLeaves; n++) {
    const Leaves leaves = random_leaves(n);
    const std::vector<float> expected = expected_sum(leaves);
    for (int64_t a = 0; a <= n; a++)
      for (int64_t b = a; b <= n; b++) {
        const std::vector<int64_t> cuts = {0, a, b, n};
        ASSERT_TRUE(same_bytes(sum_of_ranges(leaves, cuts), expected)) << n << ": " << a << ", " << b;
      }
    for (int64_t trial = 0; trial < 20; trial++) {
      std::vector<int64_t> cuts = {0, n};
      for (int64_t cut = 1; cut < n; cut++)
        if (random.below(3) == 0) cuts.insert(cuts.end() - 1, cut);
      ASSERT_TRUE(same_bytes(sum_of_ranges(leaves, cuts), expected)) << n << ", trial " << trial;
    }
  }
}

TEST(TreeSum, OfTheSharesOfRanksHasFewNodesAndTheBytesOfTheDefinition) {
  size_t most = 0;
  for (int64_t n = 1; n <= 65; n++) {
    const Leaves leaves = random_leaves(n);
    const std::vector<float> expected = expected_sum(leaves);
    for (int64_t ranks = 1; ranks <= n; ranks++) {
      std::vector<int64_t> cuts = {0};
      for (int64_t rank = 0; rank < ranks; rank++) {
        const EvenSlice share = even_slice(n, rank, ranks);
        ASSERT_EQ(share.begin, cuts.back());
        cuts.push_back(share.end);
        most = std::max(most, largest_nodes(n, share.begin, share.end).size());
      }
      ASSERT_EQ(cuts.back(), n);
      ASSERT_TRUE(same_bytes(sum_of_ranges(leaves, cuts), expected)) << n << " leaves, " << ranks << " ranks";
    }
  }
  EXPECT_EQ(most, 6u);  // 5 but for the middle one of 3 ranks with 53, 59 and 65 leaves
  EXPECT_EQ(largest_nodes(64, 16, 32).size(), 1u);
  EXPECT_TRUE(largest_nodes(5, 2, 2).empty());
}

TEST(TreeSum, FlushesDenormalsAndKeepsTheSignOfZero) {
  const float least = std::numeric_limits<float>::min();
  const Leaves leaves = {{-0.0f, -0.0f, 1.5f * least, least / 2, least / 2},
                         {-0.0f, 0.0f, -1.25f * least, least / 2, -0.0f}};
  const std::vector<float> sum = node_sum(leaves, {0, 2});
  EXPECT_TRUE(same_bytes(sum, {-0.0f, 0.0f, 0.0f, 0.0f, 0.0f}));
  EXPECT_TRUE(same_bytes(node_sum(leaves, {0, 1}), leaves[0]));  // nothing is added
}

TEST(TreeSum, LeavesZerosUntilTheLastLeafAndBeginsAgain) {
  TreeSum sum(3, 2);
  for (int64_t round = 0; round < 2; round++) {
    std::vector<float> leaf = {1, 2};
    sum.add(leaf);
    EXPECT_EQ(leaf, std::vector<float>(2));
    leaf = {10, 20};
    sum.add(leaf);
    EXPECT_EQ(leaf, std::vector<float>(2));
    leaf = {100, 200};
    sum.add(leaf);
    EXPECT_EQ(leaf, (std::vector<float>{111, 222}));
  }
}

TEST(TreeSum, TakesABufferForEachLevel) {
  for (const auto& [leaves, buffers] : {std::pair(1, 0), {2, 1}, {3, 2}, {4, 2}, {5, 3}, {64, 6}, {65, 7}})
    EXPECT_EQ(TreeSum(leaves, 16).bytes(), to_size(buffers) * 16 * sizeof(float)) << leaves;
}

TEST(TreeSum, DoesNotDependOnTheNumberOfThreads) {
  constexpr int64_t kSize = 40001;
  const auto run = [] {
    TreeSum sum(5, kSize);
    std::vector<float> leaf;
    for (uint64_t i = 0; i < 5; i++) {
      leaf = testing::normal<float>(kSize, i);
      sum.add(leaf);
    }
    return leaf;
  };
  EXPECT_EQ(with_threads(1, run), with_threads(3, run));
}

}  // namespace
}  // namespace qkv
