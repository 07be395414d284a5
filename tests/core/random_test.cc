// Philox against the vectors published with Random123, and the numbers drawn from it.
#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace qkv {
namespace {

// kat_vectors of Random123 (Salmon et al.), philox4x32-10.
TEST(Philox, GivesThePublishedWords) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, IsAFunctionOfSeedStreamAndIndex) {
  const auto first = [](uint64_t seed, Stream stream, uint64_t index) { return Random(seed, stream, index).next(); };
  EXPECT_EQ(first(1, Stream::test, 2), first(1, Stream::test, 2));
  EXPECT_NE(first(1, Stream::test, 2), first(2, Stream::test, 2));
  EXPECT_NE(first(1, Stream::test, 2), first(1, Stream::shuffle, 2));
  EXPECT_NE(first(1, Stream::test, 2), first(1, Stream::test, 2 + (uint64_t{1} << 32)));
}

TEST(Random, UniformStaysInsideZeroAndOne) {
  Random random(1, Stream::test);
  double least = 1, most = 0, sum = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; i++) {
    const double u = random.uniform();
    least = std::min(least, u), most = std::max(most, u), sum += u;
  }
  EXPECT_GT(least, 0);
  EXPECT_LT(most, 1);
  EXPECT_NEAR(sum / n, 0.5, 5 / std::sqrt(12.0 * n));  // five standard deviations of the mean
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  Random random(2, Stream::test);
  double sum = 0, squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; i++) {
    const double x = random.normal();
    sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
}

TEST(Random, BelowReachesEveryNumberEquallyOften) {
  Random random(3, Stream::test);
  std::vector<int> count(7);
  constexpr int n = 70000;
  for (int i = 0; i < n; i++) {
    const uint64_t x = random.below(7);
    ASSERT_LT(x, 7u);
    count[x]++;
  }
  for (const int c : count) EXPECT_NEAR(c, n / 7.0, 5 * std::sqrt(n / 7.0));
  EXPECT_EQ(random.below(1), 0u);
}

}  // namespace
}  // namespace qkv
