#include "ranks/watch.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(Watch, FindsARankThatIsSilentForTheTimeout) {
  Watch watch(3, 10, 0);
  watch.expect(1);
  watch.expect(2);
  double now = 0;
  for (; now < 9.5; now += 0.5) EXPECT_EQ(watch.silent_rank(now), -1) << now;
  watch.heard(2);
  EXPECT_EQ(watch.silent_rank(10), -1);
  EXPECT_EQ(watch.silent_rank(10.5), 1);
  watch.heard(1);
  EXPECT_EQ(watch.silent_rank(11), -1);
}

TEST(Watch, ExpectsNothingOfOtherRanks) {
  Watch watch(2, 1, 0);
  for (double now = 0; now < 100; now++) EXPECT_EQ(watch.silent_rank(now), -1);
  watch.expect(1);
  EXPECT_EQ(watch.silent_rank(99.9), -1);
  EXPECT_EQ(watch.silent_rank(100.1), 1);
  watch.expect(1, false);
  EXPECT_EQ(watch.silent_rank(110), -1);
}

TEST(Watch, APauseOfThisProcessIsNoSilenceOfTheOthers) {
  Watch watch(2, 10, 0);
  watch.expect(1);
  EXPECT_EQ(watch.silent_rank(1), -1);
  EXPECT_EQ(watch.silent_rank(1000), -1);  // after a suspension
  for (double now = 1001; now < 1007; now++) EXPECT_EQ(watch.silent_rank(now), -1) << now;
  EXPECT_EQ(watch.silent_rank(1008), 1);
}

TEST(Watch, BeatsEveryFiveSecondsOrMoreOftenForAShortTimeout) {
  Watch watch(2, 120, 0), strict(2, 4, 0);
  EXPECT_TRUE(watch.is_time_to_beat(0));
  EXPECT_FALSE(watch.is_time_to_beat(4.9));
  EXPECT_TRUE(watch.is_time_to_beat(5));
  EXPECT_TRUE(strict.is_time_to_beat(0));
  EXPECT_FALSE(strict.is_time_to_beat(0.9));
  EXPECT_TRUE(strict.is_time_to_beat(1));
}

}  // namespace
}  // namespace qkv
