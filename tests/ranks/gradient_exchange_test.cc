#include "ranks/gradient_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace qkv {
namespace {

TEST(NodesOfRanks, CoverAllShardsOnceInOrder) {
  for (int64_t shards = 1; shards <= 65; shards++)
    for (int ranks = 1; ranks <= shards; ranks++) {
      int64_t next = 0;
      for (const auto& nodes : nodes_of_ranks(shards, ranks)) {
        ASSERT_FALSE(nodes.empty());
        EXPECT_LE(std::ssize(nodes), std::max<int64_t>(1, 2 * kept_sums(shards)));
        for (const TreeNode& node : nodes) {
          EXPECT_EQ(node.first, next);
          next += node.count;
        }
      }
      EXPECT_EQ(next, shards);
    }
}

}  // namespace
}  // namespace qkv
