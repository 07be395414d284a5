#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/to_size.h"
#include "qkv/error.h"

namespace qkv {
namespace {

TEST(Arena, BlocksAreAlignedAndApart) {
  Arena arena(1 << 20);
  char* first = arena.take<char>(1);
  char* second = arena.take<char>(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(second - first, 64);
  std::memset(second, 1, 100);
}

TEST(Arena, AScopeGivesBackWhatWasTakenInIt) {
  Arena arena(1 << 20);
  arena.take<float>(16);
  const size_t before = arena.used();
  float* inside;
  {
    const Arena::Scope scope(arena);
    inside = arena.take<float>(1000);
    EXPECT_EQ(arena.used(), before + 4000);
  }
  EXPECT_EQ(arena.used(), before);
  EXPECT_EQ(arena.high_water(), before + 4000);
  EXPECT_EQ(arena.take<float>(1), inside);
}

TEST(Arena, ZerosAreZerosOnUsedMemoryToo) {
  Arena arena(1 << 20);
  {
    const Arena::Scope scope(arena);
    std::memset(arena.take<char>(1024), 0xFF, 1024);
  }
  const Matrix<float> m = arena.zeros<float>(4, 8);
  EXPECT_EQ(m.rows, 4);
  EXPECT_EQ(m.stride, 8);
  for (int64_t i = 0; i < 32; i++) EXPECT_EQ(m.data[i], 0);
}

TEST(Arena, ForgottenPagesAreLostAndTheBytesAroundThemStay) {
  Arena arena(size_t{1} << 20);
  const std::span<std::byte> all = arena.bytes(size_t{1} << 20);
  std::ranges::fill(all, std::byte{7});
  arena.forget(all.data() + 100, 200000);
  EXPECT_EQ(std::ranges::count(all.first(100), std::byte{7}), 100);
  EXPECT_EQ(std::ranges::count(all.subspan(200100), std::byte{7}), std::ssize(all) - 200100);
  EXPECT_EQ(all[100000], std::byte{0});
  all[100000] = std::byte{5};
  EXPECT_EQ(all[100000], std::byte{5});
}

TEST(Arena, AllReservedMemoryCanBeUsed) {
  constexpr int64_t kBytes = int64_t{70} << 20;  // more than one step of committing
  Arena arena(to_size(kBytes));
  std::memset(arena.take<char>(kBytes), 1, to_size(kBytes));
}

TEST(Arena, MoreThanIsReservedIsAnError) {
  Arena arena(1 << 20);
  const size_t before = arena.used();
  EXPECT_THROW(arena.take<char>(int64_t{1} << 30), Error);
  EXPECT_THROW(arena.take<char>(std::numeric_limits<int64_t>::max()), Error);
  EXPECT_EQ(arena.used(), before);
  EXPECT_NE(arena.take<char>(1), nullptr);
}

}  // namespace
}  // namespace qkv
