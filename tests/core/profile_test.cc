// The profile of ops: what it adds up, and that it is off without one.
#include "core/profile.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

void run_op(int64_t rows) { const ProfiledOp profiled("op", {rows, 3}, {2.0 * static_cast<double>(rows), 8}); }

TEST(Profile, AddsUpTheCallsOfEveryOpAndShape) {
  run_op(5);  // nobody listens
  Profile profile;
  run_op(5);
  run_op(7);
  run_op(5);
  ASSERT_EQ(profile.entries().size(), 2u);
  const Profile::Entry& five = profile.entries().at("op 5 × 3");
  EXPECT_EQ(five.calls, 2);
  EXPECT_EQ(five.work.flops, 20);
  EXPECT_EQ(five.work.bytes, 16);
  EXPECT_GE(five.seconds, 0);
  EXPECT_EQ(profile.entries().at("op 7 × 3").calls, 1);
}

TEST(Profile, EndsWithItsLife) {
  { const Profile profile; }
  EXPECT_EQ(Profile::current(), nullptr);
  run_op(5);
}

}  // namespace
}  // namespace qkv
