#include "core/system/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "core/to_size.h"

namespace qkv {
namespace {

class Threads : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_threads(GetParam()); }
  void TearDown() override { set_threads(before_); }
  const int before_ = threads();
};

TEST_P(Threads, CountIsWhatWasSet) { EXPECT_EQ(threads(), GetParam()); }

TEST_P(Threads, EveryIndexIsReachedOnce) {
  for (const int64_t n : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> reached(to_size(n));
    parallel_for(n, [&](int64_t i) { reached[to_size(i)]++; });
    for (const auto& count : reached) EXPECT_EQ(count, 1);
  }
}

TEST_P(Threads, BlocksCoverTheRangeWhateverTheNumberOfThreads) {
  std::atomic<int64_t> covered = 0;
  std::vector<std::pair<int64_t, int64_t>> blocks(4);
  parallel_blocks(100, 30, [&](int64_t begin, int64_t end) {
    blocks[to_size(begin / 30)] = {begin, end};
    covered += end - begin;
  });
  EXPECT_EQ(covered, 100);
  EXPECT_EQ(blocks, (std::vector<std::pair<int64_t, int64_t>>{{0, 30}, {30, 60}, {60, 90}, {90, 100}}));
}

TEST_P(Threads, NestedLoopsRunToo) {
  std::atomic<int> count = 0;
  parallel_for(4, [&](int64_t) { parallel_for(5, [&](int64_t) { count++; }); });
  EXPECT_EQ(count, 20);
}

TEST_P(Threads, ALoopThrowsWhatACallThrew) {
  for (const int64_t n : {1, 1000}) {
    EXPECT_THROW(parallel_for(n,
                              [&](int64_t i) {
                                if (i == n - 1) throw std::bad_alloc();
                              }),
                 std::bad_alloc);
    std::atomic<int64_t> count = 0;
    parallel_for(n, [&](int64_t) { count++; });
    EXPECT_EQ(count, n);
  }
}

TEST_P(Threads, AThrowingLoopMakesAllCallsAndThrowsTheFirstOfTheirExceptions) {
  std::atomic<int64_t> count = 0;
  try {
    parallel_for_throwing(100, [&](int64_t i) {
      count++;
      if (i % 10 == 3) throw i;
    });
    FAIL();
  } catch (const int64_t i) {
    EXPECT_EQ(i, 3);
  }
  EXPECT_EQ(count, 100);
}

// The smallest normal number, halved, is denormal: it must come out as zero inside a loop and only there.
TEST_P(Threads, DenormalsAreZeroInsideALoop) {
  volatile float smallest = std::numeric_limits<float>::min();
  std::vector<float> halves(8, 1.0f);
  parallel_for(8, [&](int64_t i) { halves[to_size(i)] = smallest * 0.5f; });
  EXPECT_EQ(halves, std::vector<float>(8, 0.0f));
  EXPECT_GT(smallest * 0.5f, 0);
}

INSTANTIATE_TEST_SUITE_P(OneAndMore, Threads, ::testing::Values(1, 3));

}  // namespace
}  // namespace qkv
