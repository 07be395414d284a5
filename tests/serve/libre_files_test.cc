// Translated files in memory: for a time, and within a limit.
#include "serve/libre_files.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

constexpr TranslatedFiles::Time kBegin{std::chrono::hours(1)};

TEST(TranslatedFiles, AreKeptForTenMinutes) {
  TranslatedFiles files;
  const std::string id = files.add("a.txt", "text", kBegin);
  EXPECT_EQ(id.size(), 32u);
  ASSERT_NE(files.find(id, kBegin + std::chrono::minutes(9)), nullptr);
  EXPECT_EQ(files.find(id, kBegin + std::chrono::minutes(9))->bytes, "text");
  EXPECT_EQ(files.find(std::string(32, '0'), kBegin), nullptr);
  EXPECT_EQ(files.find(id, kBegin + std::chrono::minutes(10)), nullptr);
}

TEST(TranslatedFiles, GiveWayToNewOnesBeyondTheLimit) {
  TranslatedFiles files;
  const std::string half(TranslatedFiles::kMost / 2, 'x');
  const std::string first = files.add("1", half, kBegin), second = files.add("2", half, kBegin);
  ASSERT_NE(files.find(first, kBegin), nullptr);
  const std::string third = files.add("3", "x", kBegin);
  EXPECT_EQ(files.find(first, kBegin), nullptr);
  EXPECT_NE(files.find(second, kBegin), nullptr);
  EXPECT_NE(files.find(third, kBegin), nullptr);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace qkv
