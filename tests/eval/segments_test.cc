// Segments of users by length, popularity and from files.
#include "eval/segments.h"

#include <gtest/gtest.h>

#include "core/to_size.h"
#include "tests/support/errors.h"
#include "tests/support/logs.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::log_of;

TEST(Segments, ByLengthFollowTheNumberOfEventsBeforeTheTarget) {
  std::vector<std::vector<int32_t>> users;
  for (const int64_t length : {2, 5, 6, 10, 11, 20, 21, 50, 51, 300}) users.emplace_back(to_size(length), 0);
  const Segments segments = segments_by_length(log_of(users, 1), {}, HeldOut::test);
  EXPECT_EQ(segments.names, (std::vector<std::string>{"1-4", "5-9", "10-19", "20-49", "50+"}));
  EXPECT_EQ(segments.of_user, (std::vector<int32_t>{-1, 0, 1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(Segments, ByPopularityDivideTheEventsIntoThirds) {
  // Known events: item 0 four times, 1 and 2 twice, 3 and 4 once; item 5 never. A third of ten is reached with item 0,
  // two thirds with items 1 and 2, which stay together.
  const Interactions data = log_of({{0, 1, 0, 0}, {0, 2, 2, 1}, {3, 1, 4, 2}, {0, 0, 0, 5}, {4, 4, 4, 3}}, 6);
  ItemCounts counts;
  counts.events = {4, 2, 2, 1, 1, 0};
  const Segments segments = segments_by_popularity(data, {}, HeldOut::test, counts);
  EXPECT_EQ(segments.names, (std::vector<std::string>{"head", "middle", "tail"}));
  EXPECT_EQ(segments.of_user, (std::vector<int32_t>{0, 1, 1, 2, 2}));
}

TEST(Segments, AreReadFromAFile) {
  const testing::TempDir directory;
  const std::string path = directory / "segments.csv";
  const Interactions data = log_of({{0}, {0}, {0}}, 1);
  testing::spill(path, "user,segment\nu2,\"gold, old\"\nnobody,red\nu0,red\nu0,red\n");
  const Segments segments = read_segments(path, data);
  EXPECT_EQ(segments.names, (std::vector<std::string>{"gold, old", "red"}));
  EXPECT_EQ(segments.of_user, (std::vector<int32_t>{1, -1, 0}));

  const auto error = [&](const std::string& text) {
    testing::spill(path, text);
    return error_of([&] { read_segments(path, data); });
  };
  EXPECT_EQ(error("u0,a,b\n"), path + ":1: expected 2 columns, user and segment (found 3)");
  expect_contains(error("u0,a\nu0,b\n"), path + ":2: user");
  EXPECT_EQ(error("user,segment\nnobody,b\n"),
            path + ": contains no user of the log (such as \"nobody\", where the log has \"u0\")");
  std::string many;
  Interactions large = log_of(std::vector<std::vector<int32_t>>(101, {0}), 1);
  for (int i = 0; i < 101; i++) many += "u" + std::to_string(i) + ",s" + std::to_string(i) + "\n";
  testing::spill(path, many);
  EXPECT_EQ(error_of([&] { read_segments(path, large); }), path + ":101: more than 100 segments");
}

}  // namespace
}  // namespace qkv
