#include "train/loop/private_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

size_t entries_of(const std::string& folder) {
  const auto begin = std::filesystem::directory_iterator(folder);
  return static_cast<size_t>(std::distance(begin, {}));
}

class PrivateDirectoryTest : public ::testing::Test {
 public:
  PrivateDirectoryTest() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~PrivateDirectoryTest() override { before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1); }

 protected:
  const std::string before_ = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";
  const testing::TempDir folder_, other_;  // neither lies in the other
};

TEST_F(PrivateDirectoryTest, OfAKilledProcessIsRemovedByTheNextOne) {
  const pid_t child = ::fork();
  if (child == 0) {
    const PrivateDirectory directory;
    std::ofstream(directory.path() + "/file") << "left";
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(entries_of(folder_.path()), 1u);
  {
    const PrivateDirectory one;
    EXPECT_EQ(entries_of(folder_.path()), 1u);
    const PrivateDirectory two;
    EXPECT_TRUE(std::filesystem::exists(one.path())) << "a directory in use was removed";
    EXPECT_EQ(entries_of(folder_.path()), 2u);
  }
  EXPECT_EQ(entries_of(folder_.path()), 0u);
}

TEST_F(PrivateDirectoryTest, LeavesOtherFilesAndLinks) {
  std::ofstream(other_.path() + "/file") << "kept";
  std::filesystem::create_directory_symlink(other_.path(), folder_.path() + "/qkv-rank-link");
  std::filesystem::create_directory(folder_.path() + "/qkv-other");
  std::filesystem::create_directory(folder_.path() + "/qkv-rank-mine");
  std::ofstream(folder_.path() + "/qkv-rank-mine/notes") << "kept";
  { const PrivateDirectory directory; }
  EXPECT_EQ(entries_of(folder_.path()), 3u);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/qkv-rank-mine/notes"));
  EXPECT_TRUE(std::filesystem::exists(other_.path() + "/file"));
}

}  // namespace
}  // namespace qkv
