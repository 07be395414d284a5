#include "ranks/list_message.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/to_size.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using Lists = std::vector<std::vector<int32_t>>;
using Bytes = std::vector<std::byte>;

Bytes message_of(const Lists& lists, const ListLimits& limits) {
  Bytes bytes;
  for (const auto& list : lists) append_list(list, limits, bytes);
  return bytes;
}

TEST(ListMessage, IsReadAsItWasWritten) {
  const Lists lists = {{0, 65535, 7}, {}, {1}};
  for (const int64_t bound : {65536, 65537, 0}) {
    const ListLimits limits{3, bound};
    const Bytes bytes = message_of(lists, limits);
    EXPECT_EQ(bytes.size(), 3 * 4 + 4 * (bound == 65536 ? 2 : 4));
    std::span<const std::byte> rest(bytes);
    for (const auto& list : lists) EXPECT_EQ(take_list(rest, limits), list);
    EXPECT_TRUE(rest.empty());
  }
}

TEST(ListMessage, WithoutABoundHoldsAnyNumber) {
  const std::vector<int32_t> list = {-1, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  const Bytes bytes = message_of({list}, {3});
  std::span<const std::byte> rest(bytes);
  EXPECT_EQ(take_list(rest, {3}), list);
}

TEST(ListMessage, OfALengthOrNumberOutsideTheLimitsIsRefused) {
  const auto error_for = [](const std::vector<int32_t>& list, const ListLimits& written, const ListLimits& read) {
    const Bytes bytes = message_of({list}, written);
    return error_of([&] {
      std::span<const std::byte> rest(bytes);
      take_list(rest, read);
    });
  };
  EXPECT_EQ(error_for({1, 2, 3}, {3, 9}, {2, 9}), "sent a list of 3 numbers; at most 2 are accepted");
  EXPECT_EQ(error_for({1, 9}, {2, 10}, {2, 9}), "sent the number 9; must be between 0 and 8");
  EXPECT_EQ(error_for({-1}, {1, 0}, {1, 70000}), "sent the number -1; must be between 0 and 69999");
}

TEST(ListMessage, ThatEndsEarlyIsRefused) {
  const ListLimits limits{3, 9};
  const Bytes bytes = message_of({{1, 2, 3}}, limits);
  for (size_t size = 0; size < bytes.size(); size++)
    EXPECT_EQ(error_of([&] {
                std::span<const std::byte> rest = std::span(bytes).first(size);
                take_list(rest, limits);
              }),
              "sent a message that is too short");
}

}  // namespace
}  // namespace qkv
