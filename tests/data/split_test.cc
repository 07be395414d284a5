// Splits of a log into training, validation and test events.
#include "data/log/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

// Users 0 … with these times; the items do not matter.
Interactions with_times(const std::vector<std::vector<int64_t>>& users) {
  Interactions data;
  data.items = {"item"};
  for (const std::vector<int64_t>& times : users) {
    data.users.push_back(std::to_string(data.users.size()));
    data.times.insert(data.times.end(), times.begin(), times.end());
    data.events.resize(data.times.size());
    data.offsets.push_back(std::ssize(data.times));
  }
  return data;
}

TEST(Split, LeaveOneOutHoldsOutTheLastTwoEvents) {
  const Interactions data = with_times({{1, 2, 3, 4, 5}, {1, 2, 3}, {1, 2}, {}});
  const Split split;
  EXPECT_EQ(split.target(data, 0, HeldOut::test), 4);
  EXPECT_EQ(split.known(data, 0, HeldOut::test), 4);
  EXPECT_EQ(split.target(data, 0, HeldOut::validation), 3);
  EXPECT_EQ(split.known(data, 0, HeldOut::validation), 3);
  EXPECT_EQ(split.known(data, 1, HeldOut::validation), 1);
  for (const HeldOut part : {HeldOut::validation, HeldOut::test}) {
    EXPECT_EQ(split.target(data, 2, part), std::nullopt);
    EXPECT_EQ(split.known(data, 2, part), 2);
    EXPECT_EQ(split.known(data, 3, part), 0);
  }
}

TEST(Split, HoldoutEventsAreHeldOutInEachPart) {
  const Interactions data = with_times({{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6}});
  Split split;
  split.holdout = 3;
  EXPECT_EQ(split.target(data, 0, HeldOut::test), 5);
  EXPECT_EQ(split.held_out(data, 0, HeldOut::test), 3);
  EXPECT_EQ(split.target(data, 0, HeldOut::validation), 2);
  EXPECT_EQ(split.held_out(data, 0, HeldOut::validation), 3);
  EXPECT_EQ(split.known(data, 0, HeldOut::validation), 2);
  EXPECT_EQ(split.target(data, 1, HeldOut::validation), 1);
  EXPECT_EQ(split.target(data, 2, HeldOut::test), std::nullopt);  // fewer than 7 events
  EXPECT_EQ(split.held_out(data, 2, HeldOut::test), 0);
  EXPECT_EQ(split.known(data, 2, HeldOut::validation), 6);
}

TEST(Split, TemporalTargetsAreTheFirstEventsFromAMomentOn) {
  const Interactions data = with_times({{1, 10, 20}, {1, 2}, {9, 10, 10, 19, 20, 30}, {25}, {1, 21}});
  const Split split{SplitRule::temporal, 10, 20};
  EXPECT_EQ(split.target(data, 0, HeldOut::validation), 1);
  EXPECT_EQ(split.target(data, 0, HeldOut::test), 2);
  EXPECT_EQ(split.target(data, 1, HeldOut::validation), std::nullopt);
  EXPECT_EQ(split.target(data, 1, HeldOut::test), std::nullopt);
  EXPECT_EQ(split.target(data, 2, HeldOut::validation), 1);
  EXPECT_EQ(split.known(data, 2, HeldOut::validation), 1);
  EXPECT_EQ(split.target(data, 2, HeldOut::test), 4);
  EXPECT_EQ(split.known(data, 2, HeldOut::test), 4);
  EXPECT_EQ(split.target(data, 3, HeldOut::test), 0);  // there is nothing before it
  EXPECT_EQ(split.target(data, 4, HeldOut::validation), std::nullopt);
  EXPECT_EQ(split.target(data, 4, HeldOut::test), 1);
  EXPECT_EQ(split.held_out(data, 2, HeldOut::validation), 3);
  EXPECT_EQ(split.held_out(data, 2, HeldOut::test), 2);
  EXPECT_EQ(split.held_out(data, 4, HeldOut::validation), 0);
}

TEST(Split, TheShareOfEventsDeterminesTheMoments) {
  std::vector<int64_t> times;
  for (int64_t i = 0; i < 100; i++) times.push_back((i * 37) % 100);  // 0 … 99 in another order
  const Split split = Split::at_share(with_times({times}), 0.1);
  EXPECT_EQ(split.rule, SplitRule::temporal);
  EXPECT_EQ(split.validation_from, 80);
  EXPECT_EQ(split.test_from, 90);
  const Split tied = Split::at_share(with_times({{1, 2, 3, 3, 3, 3, 3, 3, 3, 9}}), 0.2);
  EXPECT_EQ(tied.validation_from, 3);
  EXPECT_EQ(tied.test_from, 3);
}

TEST(Split, TheShareRequiresTimesAndAValidRange) {
  const Interactions data = with_times({{1, 2, 3}});
  EXPECT_EQ(error_of([&] { Split::at_share({}, 0.1); }), "temporal split: the log has no times");
  for (const double share : {0.0, -1.0, 0.5, std::nan("")})
    EXPECT_NE(error_of([&] { Split::at_share(data, share); }).find("share must be greater than 0 and less than 1/2"),
              std::string::npos);
}

// 1000 users with these numbers of events.
Interactions many_users(int64_t events) {
  std::vector<int64_t> times;
  for (int64_t i = 0; i < events; i++) times.push_back(i);
  return with_times(std::vector<std::vector<int64_t>>(1000, times));
}

TEST(Split, ByUsersHoldsOutTheLastEventOfOneUserInTwenty) {
  const Interactions data = many_users(2);
  const Split split = Split::of(data, SplitRule::users, 0.1);
  int64_t test = 0, validation = 0;
  for (int64_t user = 0; user < data.user_count(); user++) {
    const auto in_test = split.target(data, user, HeldOut::test),
               in_validation = split.target(data, user, HeldOut::validation);
    EXPECT_FALSE(in_test && in_validation);
    EXPECT_EQ(in_test.value_or(1), 1);
    EXPECT_EQ(in_validation.value_or(1), 1);
    EXPECT_EQ(split.known(data, user, HeldOut::validation), in_test || in_validation ? 1 : 2);
    EXPECT_EQ(split.known(data, user, HeldOut::test), in_test ? 1 : 2);
    test += in_test.has_value(), validation += in_validation.has_value();
  }
  EXPECT_EQ(test, 50);
  EXPECT_EQ(validation, 50);
}

TEST(Split, ByUsersDependsOnNamesOnly) {
  const Interactions data = many_users(3);
  const Split split = Split::by_users(data);
  Interactions reversed = data;
  std::ranges::reverse(reversed.users);
  const Split other = Split::by_users(reversed);
  for (int64_t user = 0; user < 1000; user++)
    EXPECT_EQ(split.target(data, user, HeldOut::test), other.target(reversed, 999 - user, HeldOut::test));
}

TEST(Split, ByUsersNeedsThreeUsersWithTwoEvents) {
  const Interactions few = with_times({{1, 2}, {1, 2}, {1}});
  EXPECT_EQ(error_of([&] { Split::by_users(few); }),
            "split by users: needs at least 3 users with two events (found 2)");
  const Interactions data = with_times({{1, 2}, {1, 2}, {1, 2}, {1}});
  const Split split = Split::by_users(data);
  int64_t targets = 0;
  for (int64_t user = 0; user < 4; user++)
    for (const HeldOut part : {HeldOut::validation, HeldOut::test})
      targets += split.target(data, user, part).has_value();
  EXPECT_EQ(targets, 2);
  EXPECT_EQ(split.known(data, 3, HeldOut::test), 1);
}

TEST(Split, TheLogBeforeAPartHasTheKnownEventsOfEachUser) {
  const Interactions data = with_times({{1, 2, 3, 4}, {5}, {1, 6, 7}});
  for (const HeldOut part : {HeldOut::validation, HeldOut::test})
    for (const Split& split : {Split{}, Split{SplitRule::temporal, 3, 6}}) {
      Interactions before = data;
      keep_known(before, split, part);
      EXPECT_EQ(before.items, data.items);
      ASSERT_EQ(before.users, data.users);
      EXPECT_EQ(before.offsets.back(), std::ssize(before.events));
      EXPECT_EQ(before.times.size(), before.events.size());
      for (int64_t user = 0; user < 3; user++) {
        const auto known = static_cast<size_t>(split.known(data, user, part));
        EXPECT_TRUE(std::ranges::equal(before.of(user), data.of(user).first(known)));
        EXPECT_TRUE(std::ranges::equal(before.times_of(user), data.times_of(user).first(known)));
      }
    }
}

}  // namespace
}  // namespace qkv
