#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string>
#include <thread>

#include "core/system/limits.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

class Quota : public ::testing::Test {
 protected:
  void set(const std::string& group, const std::string& text) {
    const std::filesystem::path directory = std::filesystem::path(root_.path()) / group;
    std::filesystem::create_directories(directory);
    testing::spill(directory / "cpu.max", text);
  }
  int of(const std::string& group) const { return quota_of(root_.path(), group); }

 private:
  testing::TempDir root_;
};

TEST_F(Quota, IsRoundedUp) {
  set("a", "150000 100000\n");
  EXPECT_EQ(of("a"), 2);
  set("a", "1000 100000\n");
  EXPECT_EQ(of("a"), 1);
}

TEST_F(Quota, IsTheSmallestOfTheGroupsThatContainIt) {
  set("a", "300000 100000\n");
  set("a/b", "max 100000\n");
  set("a/b/c", "800000 100000\n");
  EXPECT_EQ(of("a/b/c"), 3);
  EXPECT_EQ(of("a/b"), 3);
  set(".", "200000 100000\n");
  EXPECT_EQ(of("a/b/c"), 2);
}

TEST_F(Quota, IsZeroWithoutOne) {
  EXPECT_EQ(of("a"), 0);
  for (const char* text : {"max 100000\n", "", "x", "0 100000", "100000 0", "-5 100000", "100000"}) {
    set("a", text);
    EXPECT_EQ(of("a"), 0) << text;
  }
}

TEST(Processors, AreThoseOfTheAffinityMask) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(processors(), 1);
  }).join();
}

}  // namespace
}  // namespace qkv
