// The division of parameters among ranks.
#include "ranks/slices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/to_size.h"

namespace qkv {
namespace {

// Calls f(slice) for all slices in the order of the parameters.
template <class F>
void for_each_slice(const std::vector<int64_t>& sizes, int64_t ranks, F&& f) {
  for (const Slice& bucket : buckets_of(sizes, ranks))
    for (int64_t rank = 0; rank < ranks; rank++) f(slice_of(bucket, rank, ranks));
}

TEST(Slices, OfAllRanksHaveEachParameterOnceInWholeBlocks) {
  const std::vector<int64_t> sizes = {50 * kSliceBlock + 3, 1, 2 * kSliceBlock, kSliceBlock - 1};
  for (int64_t ranks = 1; ranks <= 70; ranks++) {
    std::vector<int64_t> next(sizes.size());  // the first parameter of each range that no rank owns yet
    for_each_slice(sizes, ranks, [&](const Slice& slice) {
      const size_t range = to_size(slice.range);
      if (slice.size == 0) return;
      EXPECT_EQ(slice.first, next[range]);
      EXPECT_EQ(slice.first % kSliceBlock, 0);
      next[range] += slice.size;
      EXPECT_TRUE(next[range] == sizes[range] || slice.size % kSliceBlock == 0);
    });
    EXPECT_EQ(next, sizes) << ranks;
  }
}

TEST(Slices, OfBucketsAreAlike) {
  const std::vector<int64_t> sizes = {3195 * kSliceBlock};  // those of preset base
  for (const int64_t ranks : {2, 8, 64}) {
    const std::vector<Slice> buckets = buckets_of(sizes, ranks);
    EXPECT_EQ(buckets.size(), ranks == 64 ? 13u : 25u);
    int64_t least = sizes[0], most = 0;
    for_each_slice(sizes, ranks, [&](const Slice& slice) {
      least = std::min(least, slice.size / kSliceBlock);
      most = std::max(most, slice.size / kSliceBlock);
    });
    EXPECT_LE(most - least, 1);
    EXPECT_LE(most * ranks, ranks == 64 ? 256 : 128);
  }
}

TEST(Slices, OfOneRankAreTheRanges) {
  const std::vector<int64_t> sizes = {40001, 7};
  const std::vector<Slice> slices = slices_of(buckets_of(sizes, 1), 0, 1);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[1].range, 1);
  EXPECT_EQ(slices[0].size, 40001);
  EXPECT_EQ(slices[1].size, 7);
}

TEST(Slices, OfFewBlocksAreEmptyForSomeRanks) {
  const std::vector<int64_t> sizes = {kSliceBlock + 1};
  const std::vector<Slice> buckets = buckets_of(sizes, 3);
  EXPECT_TRUE(slices_of(buckets, 0, 3).empty());
  EXPECT_EQ(slices_of(buckets, 1, 3).size(), 1u);
  EXPECT_EQ(slices_of(buckets, 2, 3).at(0).size, 1);
}

}  // namespace
}  // namespace qkv
