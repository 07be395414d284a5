// Only one training of a run at a time holds its lock.
#include "io/runs/run_lock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>

#include "io/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::TempDir;

class RunLockTest : public ::testing::Test {
 protected:
  RunLockTest() { make_directory(run.checkpoints()); }

  std::string refusal() const {
    return error_of([&] { const RunLock second(run); });
  }
  static std::string owner(pid_t process) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    return fmt::format("process {} on host {}", process, host.data());
  }
  std::string refused_by(pid_t process) const {
    return fmt::format("{}: is being trained by {}; wait until it ends, or use another directory", run.root(),
                       owner(process));
  }

  TempDir directory;
  RunDirectory run{directory / "run"};
};

TEST_F(RunLockTest, IsHeldByOneAndThenByTheNext) {
  std::optional<RunLock> first(std::in_place, run);
  EXPECT_EQ(refusal(), refused_by(::getpid()));
  EXPECT_EQ(refusal(), refused_by(::getpid()));  // the refused one did not change it
  EXPECT_EQ(testing::slurp(run.lock()), owner(::getpid()));
  first.reset();
  EXPECT_EQ(testing::slurp(run.lock()), "");
  EXPECT_TRUE(std::filesystem::exists(run.lock()));
  EXPECT_NO_THROW(const RunLock next(run));
}

TEST_F(RunLockTest, OfADeadProcessIsNoObstacle) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(run);
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(refusal(), refused_by(child));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(testing::slurp(run.lock()), owner(child));
  EXPECT_NO_THROW(const RunLock next(run));
  ::close(ready[0]), ::close(ready[1]);
}

TEST_F(RunLockTest, NamesADirectoryThatIsMissing) {
  std::filesystem::remove(run.checkpoints());
  EXPECT_EQ(refusal(), run.lock() + ": cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace qkv
