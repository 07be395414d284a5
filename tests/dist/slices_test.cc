// The division of parameters among ranks.
#include "dist/slices.h"

#include <gtest/gtest.h>

#include "core/to_size.h"

namespace qkv {
namespace {

TEST(Slices, OfAllRanksHaveEachParameterOnceInWholeBlocks) {
  const std::vector<int64_t> sizes = {5 * kSliceBlock + 3, 1, 2 * kSliceBlock, kSliceBlock - 1};
  for (int64_t ranks = 1; ranks <= 9; ranks++) {
    std::vector<int64_t> next(sizes.size());  // the first parameter of each range that no rank owns yet
    for (int64_t rank = 0; rank < ranks; rank++)
      for (const Slice& slice : slices_of(sizes, rank, ranks)) {
        const size_t range = to_size(slice.range);
        EXPECT_EQ(slice.first, next[range]);
        EXPECT_EQ(slice.first % kSliceBlock, 0);
        EXPECT_GT(slice.size, 0);
        next[range] += slice.size;
        EXPECT_TRUE(next[range] == sizes[range] || slice.size % kSliceBlock == 0);
      }
    EXPECT_EQ(next, sizes) << ranks;
  }
}

TEST(Slices, OfOneRankAreTheRanges) {
  const std::vector<int64_t> sizes = {40001, 7};
  const std::vector<Slice> slices = slices_of(sizes, 0, 1);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[1].range, 1);
  EXPECT_EQ(slices[0].size, 40001);
  EXPECT_EQ(slices[1].size, 7);
}

TEST(Slices, OfFewBlocksAreEmptyForSomeRanks) {
  const std::vector<int64_t> sizes = {kSliceBlock + 1};
  EXPECT_TRUE(slices_of(sizes, 0, 3).empty());
  EXPECT_EQ(slices_of(sizes, 1, 3).size(), 1u);
  EXPECT_EQ(slices_of(sizes, 2, 3).at(0).size, 1);
}

}  // namespace
}  // namespace qkv
