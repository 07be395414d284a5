#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

#include "core/arena.h"
#include "core/system/limits.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

class GroupMemoryLimit : public ::testing::Test {
 protected:
  void set(const std::string& group, const std::string& text) {
    const std::filesystem::path directory = std::filesystem::path(root_.path()) / group;
    std::filesystem::create_directories(directory);
    testing::spill(directory / "memory.max", text);
  }
  size_t of(const std::string& group) const { return group_memory_limit(root_.path(), group, "memory.max"); }

 private:
  testing::TempDir root_;
};

TEST_F(GroupMemoryLimit, IsTheSmallestOfTheGroupsThatContainIt) {
  set("a", "3000\n");
  set("a/b", "max\n");
  set("a/b/c", "8000\n");
  EXPECT_EQ(of("a/b/c"), 3000u);
  EXPECT_EQ(of("a/b"), 3000u);
  set("a/b", "2000\n");
  EXPECT_EQ(of("a/b/c"), 2000u);
}

TEST_F(GroupMemoryLimit, IsTheLargestNumberWithoutALimit) {
  EXPECT_EQ(of("a"), std::numeric_limits<size_t>::max());
  set("a", "max\n");
  EXPECT_EQ(of("a"), std::numeric_limits<size_t>::max());
}

TEST(MemoryLimit, IsAtMostTheMemoryOfTheMachine) {
  const MemoryLimit limit = memory_limit();
  EXPECT_GT(limit.bytes, used_memory());
  EXPECT_LE(limit.bytes, physical_memory());
  EXPECT_EQ(limit.of_group, limit.bytes < physical_memory());
  EXPECT_EQ((MemoryLimit{size_t{3} << 20, true}.text()), "the control group (cgroup) allows 3.0 MiB");
}

TEST(UsedMemory, GrowsWithThePagesThatAreUsed) {
  const size_t before = used_memory();
  constexpr size_t kBytes = size_t{32} << 20;
  Arena arena(kBytes);
  for (std::byte& byte : arena.bytes(kBytes)) byte = std::byte{1};
  EXPECT_GE(used_memory(), before + kBytes * 3 / 4);
}

}  // namespace
}  // namespace qkv
