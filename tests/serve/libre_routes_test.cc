// Translated files in memory: for a time, and within a limit.
#include "serve/api/libre_routes.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

constexpr TranslatedFiles::Time kBegin{std::chrono::hours(1)};

TEST(TranslatedFiles, AreKeptForTenMinutes) {
  TranslatedFiles files;
  const std::string id = files.add("a.txt", "text", kBegin);
  EXPECT_EQ(id.size(), 32u);
  ASSERT_TRUE(files.find(id, kBegin + std::chrono::minutes(9)));
  EXPECT_EQ(files.find(id, kBegin + std::chrono::minutes(9))->bytes, "text");
  EXPECT_FALSE(files.find(std::string(32, '0'), kBegin));
  EXPECT_FALSE(files.find(id, kBegin + std::chrono::minutes(10)));
}

TEST(TranslatedFiles, GiveWayToNewOnesBeyondTheLimit) {
  TranslatedFiles files;
  const std::string half(TranslatedFiles::kMost / 2, 'x');
  const std::string first = files.add("1", half, kBegin), second = files.add("2", half, kBegin);
  ASSERT_TRUE(files.find(first, kBegin));
  const std::string third = files.add("3", "x", kBegin);
  EXPECT_FALSE(files.find(first, kBegin));
  EXPECT_TRUE(files.find(second, kBegin));
  EXPECT_TRUE(files.find(third, kBegin));
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace qkv
