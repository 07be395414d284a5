// Rows of the key-value cache: reuse, ranges, and the blocks that go back to the system.
#include "decode/engine/row_pool.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/random.h"
#include "core/to_size.h"

namespace qkv {
namespace {

using std::chrono::seconds;

TEST(RowPool, TakesRowsOfTheFirstBlocksFirst) {
  RowPool pool;
  std::vector<int32_t> rows(2 * RowBlocks::kRows + 1);
  for (int32_t& row : rows) row = pool.take();
  std::vector<int32_t> wanted(rows.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(rows, wanted);
  EXPECT_EQ(pool.rows(), 3 * RowBlocks::kRows);
  pool.give_back(std::vector<int32_t>{2000, 7});
  EXPECT_EQ(pool.take(), 7);
  EXPECT_EQ(pool.take(), 2000);
  EXPECT_EQ(pool.take(), 2049);
}

TEST(RowPool, BlocksUnusedForAWhileAreReportedOnce) {
  RowPool pool;
  std::vector<int32_t> first, second;
  for (int64_t i = 0; i < RowBlocks::kRows; i++) first.push_back(pool.take());
  for (int i = 0; i < 3; i++) second.push_back(pool.take());
  const Clock::time_point start;
  pool.give_back(second);
  EXPECT_TRUE(pool.unused(start).empty());
  EXPECT_TRUE(pool.unused(start + seconds(9)).empty());
  const RowRange block{RowBlocks::kRows, 2 * RowBlocks::kRows};
  EXPECT_EQ(pool.unused(start + seconds(10)), std::vector{block});
  EXPECT_TRUE(pool.unused(start + seconds(30)).empty());
  const int32_t row = pool.take();  // the block is used again
  EXPECT_GE(row, RowBlocks::kRows);
  EXPECT_TRUE(pool.unused(start + seconds(31)).empty());
  pool.give_back(std::vector{row});
  EXPECT_TRUE(pool.unused(start + seconds(42)).empty());
  EXPECT_EQ(pool.unused(start + seconds(52)), std::vector{block});
}

TEST(RangePool, TakesTheFirstRangeThatIsLongEnough) {
  RangePool pool(100);
  const RowRange a = pool.take(10), b = pool.take(20), c = pool.take(30);
  EXPECT_EQ(a, (RowRange{0, 10}));
  EXPECT_EQ(b, (RowRange{10, 30}));
  EXPECT_EQ(c, (RowRange{30, 60}));
  EXPECT_TRUE(pool.has(40));
  EXPECT_FALSE(pool.has(41));
  pool.give_back(b);
  EXPECT_EQ(pool.take(5), (RowRange{10, 15}));
  EXPECT_EQ(pool.take(16), (RowRange{60, 76}));
  pool.give_back(a);
  EXPECT_EQ(pool.take(0), RowRange());
  EXPECT_EQ(pool.take(11), (RowRange{15, 26}));
}

TEST(RangePool, GivenBackRangesJoin) {
  RangePool pool(200);
  Random random(1, Stream::test);
  std::vector<RowRange> taken;
  for (int i = 0; i < 1000; i++) {
    const auto rows = static_cast<int64_t>(random.below(12));
    if (random.below(2) == 0 && pool.has(rows)) {
      const RowRange next = pool.take(rows);
      EXPECT_EQ(next.end - next.begin, rows);
      for (const RowRange& other : taken)
        EXPECT_TRUE(next.end <= other.begin || other.end <= next.begin || other.begin == other.end || rows == 0);
      taken.push_back(next);
    } else if (!taken.empty()) {
      const size_t i_of_one = random.below(taken.size());
      pool.give_back(taken[i_of_one]);
      taken.erase(taken.begin() + static_cast<int64_t>(i_of_one));
    }
  }
  for (const RowRange& range : taken) pool.give_back(range);
  EXPECT_EQ(pool.take(200), (RowRange{0, 200}));
}

}  // namespace
}  // namespace qkv
