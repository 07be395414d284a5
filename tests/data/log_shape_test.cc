// The shape of a log.
#include "data/log/log_shape.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace qkv {
namespace {

Interactions log_of(const std::vector<std::vector<int32_t>>& users, int32_t items) {
  Interactions data;
  for (int32_t item = 0; item < items; item++) data.items.push_back(std::to_string(item));
  for (const std::vector<int32_t>& events : users) {
    data.users.push_back(std::to_string(data.users.size()));
    data.events.insert(data.events.end(), events.begin(), events.end());
    data.offsets.push_back(std::ssize(data.events));
  }
  return data;
}

TEST(LogShape, CountsUsersItemsEventsAndTargets) {
  const LogShape shape = shape_of(log_of({{0, 1, 2, 3, 4}, {1, 2, 3}, {2, 0}, {4}}, 6), {});
  EXPECT_EQ(shape.users, 4);
  EXPECT_EQ(shape.items, 6);
  EXPECT_EQ(shape.events, 11);
  EXPECT_EQ(shape.targets, 2 + 0 + 1 + 0);  // leave-one-out trains on 3, 1, 2 and 1 events
  EXPECT_DOUBLE_EQ(shape.targets_per_item(), 0.5);
}

TEST(LogShape, PercentilesAreLengthsOfUsers) {
  std::vector<std::vector<int32_t>> users;
  for (size_t length = 100; length >= 1; length--) users.emplace_back(length, 0);
  const LogShape shape = shape_of(log_of(users, 1), {});
  EXPECT_EQ(shape.median, 50);
  EXPECT_EQ(shape.p95, 95);
  EXPECT_EQ(shape.longest, 100);
}

TEST(LogShape, RepetitionsAreNextEventsOfItemsThatTheUserHadBefore) {
  const LogShape shape = shape_of(log_of({{0, 1, 0, 0, 2}, {0, 1}, {1, 1}}, 3), {});
  EXPECT_DOUBLE_EQ(shape.repetition, 3.0 / 5);  // of 1 0, 0 (the validation), 1 and 1; the test is not read
  EXPECT_DOUBLE_EQ(shape_of(log_of({{0, 1}, {0, 1}}, 2), {}).repetition, 0);
}

TEST(LogShape, RepetitionsAreThoseOfTheValidationIfItHasEnoughTargets) {
  std::vector<std::vector<int32_t>> users(60, {0, 0, 0, 1, 2});  // only early events repeat
  EXPECT_EQ(shape_of(log_of(users, 3), {}).repetition, 0);
  std::ranges::fill(users, std::vector<int32_t>{0, 1, 2, 0, 3});  // only the validation
  EXPECT_EQ(shape_of(log_of(users, 4), {}).repetition, 1);
  users.resize(29);  // too few: also 1 2 of training
  EXPECT_DOUBLE_EQ(shape_of(log_of(users, 4), {}).repetition, 1 / 3.0);
}

TEST(LogShape, AUserWithVeryManyEventsCountsNoMoreThanTrainingReads) {
  std::vector<std::vector<int32_t>> users(40, {0, 1, 2, 3, 4, 5});
  const LogShape before = shape_of(log_of(users, 8), {});
  users.emplace_back(100'002, 7);
  const LogShape after = shape_of(log_of(users, 8), {});
  EXPECT_EQ(before.targets, 40 * 3);
  EXPECT_EQ(after.targets, before.targets + 50);  // max_length 50
  EXPECT_EQ(after.longest, 100'002);
  EXPECT_LT(after.repetition, 0.03);  // one target of the validation
  EXPECT_EQ(shape_of(log_of(users, 8), {}, 2).targets, 40 * 2 + 2);
  EXPECT_EQ(shape_of(log_of(users, 8), {}, 1000).targets, before.targets + 1000);
}

}  // namespace
}  // namespace qkv
