// Buckets of the gaps between events, and histories as a model reads them.
#include "data/log/history.h"

#include <gtest/gtest.h>

#include <limits>

namespace qkv {
namespace {

constexpr int64_t kLeast = kNoTime + 1, kMost = std::numeric_limits<int64_t>::max();

TEST(GapBucket, IsOneMoreThanTheBitsOfTheGap) {
  EXPECT_EQ(gap_bucket(5, 5), 1);
  for (int bits = 1; bits < 64; bits++) {
    const int64_t least = int64_t{1} << (bits - 1), most = least + (least - 1);
    EXPECT_EQ(gap_bucket(0, least), 1 + bits);
    EXPECT_EQ(gap_bucket(-most / 2, most - most / 2), 1 + bits);
  }
  EXPECT_EQ(gap_bucket(kLeast, kMost), kGapBuckets - 1);
  EXPECT_EQ(gap_bucket(kMost, kMost), 1);
}

TEST(GapBucket, IsZeroIfATimeIsUnknown) {
  EXPECT_EQ(gap_bucket(kNoTime, 5), 0);
  EXPECT_EQ(gap_bucket(5, kNoTime), 0);
  EXPECT_EQ(gap_bucket(kNoTime, kNoTime), 0);
}

class HistoryTest : public ::testing::Test {
 protected:
  static std::vector<int32_t> gaps(const History& history, int64_t max_length) {
    Packed packed;
    append_history(history, {max_length, true, true}, packed);
    return packed.gaps;
  }

  std::vector<int32_t> items = {4, 7, 4, 9};
  std::vector<int64_t> times = {100, 100, 101, 105};
};

TEST_F(HistoryTest, UsesTheLastEvents) {
  Packed packed;
  append_history({items, times}, {3, true, false}, packed);
  append_history({items, times}, {9, true, false}, packed);
  append_history({items, times}, {9, false, false}, packed);
  EXPECT_EQ(packed.ids, (std::vector<int32_t>{7, 4, 9, 4, 7, 4, 9, 4, 7, 4, 9}));
  EXPECT_EQ(packed.positions, (std::vector<int32_t>{0, 1, 2, 5, 6, 7, 8, 0, 1, 2, 3}));
  EXPECT_EQ(packed.offsets, (std::vector<int32_t>{0, 3, 7, 11}));
  EXPECT_TRUE(packed.gaps.empty());
}

TEST_F(HistoryTest, IncludesTheGapBeforeTheFirstEventUsed) {
  EXPECT_EQ(gaps({items, times}, 9), (std::vector<int32_t>{0, 1, 2, 4}));
  EXPECT_EQ(gaps({items, times}, 4), (std::vector<int32_t>{0, 1, 2, 4}));
  EXPECT_EQ(gaps({items, times}, 2), (std::vector<int32_t>{2, 4}));
  EXPECT_EQ(gaps(History{items, times}.last(2), 2), (std::vector<int32_t>{0, 4}));
  EXPECT_EQ(gaps(History{items, times}.first(3), 1), (std::vector<int32_t>{2}));
}

TEST_F(HistoryTest, HasNoGapsWithoutTimes) {
  EXPECT_EQ(gaps({items}, 9), (std::vector<int32_t>(4)));
  EXPECT_EQ(gaps(History{items}.last(2), 9), (std::vector<int32_t>(2)));
  times[1] = kNoTime;
  EXPECT_EQ(gaps({items, times}, 9), (std::vector<int32_t>{0, 0, 0, 4}));
}

}  // namespace
}  // namespace qkv
