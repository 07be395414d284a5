// The search for the largest batch that fits into memory.
#include "train/largest_batch.h"

#include <gtest/gtest.h>

#include <cmath>

namespace qkv {
namespace {

struct Search {
  int64_t found = 0, calls = 0;
};

template <class F>
Search search(int64_t least, int64_t most, size_t limit, F&& bytes) {
  Search result;
  result.found = largest_that_fits(least, most, limit, [&](int64_t n) -> std::optional<size_t> {
    EXPECT_GE(n, least);
    EXPECT_LE(n, most);
    result.calls++;
    const double size = bytes(static_cast<double>(n));
    if (size > static_cast<double>(limit)) return {};
    return static_cast<size_t>(size);
  });
  return result;
}

TEST(LargestThatFits, NeedsFewCallsIfMemoryIsLinear) {
  const auto bytes = [](double n) { return 1e6 + 5000 * n; };
  for (const size_t limit : {2000000, 10000000, 1000000000}) {
    const Search s = search(50, 10000000, limit, bytes);
    const int64_t largest = (static_cast<int64_t>(limit) - 1000000) / 5000;
    EXPECT_LE(s.found, largest);
    EXPECT_GE(s.found, largest - 64);
    EXPECT_LE(s.calls, 6);
  }
}

TEST(LargestThatFits, FindsTheLargestIfMemoryIsNotLinear) {
  for (const double power : {0.7, 1.0, 1.5, 2.0}) {
    const auto bytes = [&](double n) { return 1000 * std::pow(n, power) + std::floor(n / 500) * 20000; };
    const double limit = bytes(3000) + 1;
    const Search s = search(10, 100000, static_cast<size_t>(limit), bytes);
    EXPECT_LE(s.found, 3000);
    EXPECT_GE(s.found, 3000 - 64);
    EXPECT_LE(s.calls, 20) << power;
  }
}

TEST(LargestThatFits, StaysWithinTheBounds) {
  const auto bytes = [](double n) { return 10 * n; };
  EXPECT_EQ(search(50, 400, 1000000, bytes).found, 400);
  EXPECT_EQ(search(50, 50, 1000000, bytes).found, 50);
  EXPECT_EQ(search(50, 400, 500, bytes).found, 50);
}

}  // namespace
}  // namespace qkv
