// Amounts that clients hold of what they share.
#include "serve/http/client_shares.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(ClientShares, OneClientLeavesRoomForOthers) {
  ClientShares shares(100, 75);
  EXPECT_TRUE(shares.take("a", 70));
  EXPECT_FALSE(shares.take("a", 6));
  EXPECT_TRUE(shares.take("a", 5));
  EXPECT_TRUE(shares.take("b", 25));
  EXPECT_FALSE(shares.take("c", 1));
  EXPECT_EQ(shares.of("a"), 75);
  EXPECT_EQ(shares.of_all(), 100);
  shares.give_back("a", 75);
  shares.give_back("b", 25);
  EXPECT_EQ(shares.of_all(), 0);
}

TEST(ClientShares, AClientWithNothingMayTakeAllThatIsLeft) {
  ClientShares shares(100, 75);
  EXPECT_TRUE(shares.take("a", 100));
  EXPECT_FALSE(shares.take("a", 1));
  shares.give_back("a", 100);
  EXPECT_FALSE(shares.take("a", 101));
}

}  // namespace
}  // namespace qkv
