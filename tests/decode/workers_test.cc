// Jobs that fail in worker threads, or in the thread that waits.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>

#include "core/fail.h"
#include "decode/pipeline.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

class WorkersTest : public ::testing::TestWithParam<size_t> {
 protected:
  std::vector<Arena*> arenas() {
    for (size_t i = 0; i < GetParam(); i++) arenas_.push_back(std::make_unique<Arena>(1 << 20));
    std::vector<Arena*> result;
    for (const auto& arena : arenas_) result.push_back(arena.get());
    return result;
  }

 private:
  std::vector<std::unique_ptr<Arena>> arenas_;
};

TEST_P(WorkersTest, WaitRethrowsJobErrors) {
  Workers workers(arenas());
  std::atomic<int> done = 0;
  for (int job = 0; job < 5; job++)
    workers.submit([&done, job](Arena&) {
      done++;
      if (job == 2) fail("job {}", job);
    });
  std::vector<std::string> errors;
  while (workers.open() > 0) {
    const std::string error = testing::error_if_any([&] { workers.wait(); });
    if (!error.empty()) errors.push_back(error);
  }
  EXPECT_EQ(errors, std::vector<std::string>{"job 2"});
  EXPECT_EQ(done, 5);
}

TEST_P(WorkersTest, ErrorsWithoutAWaitAreDropped) {
  Workers workers(arenas());
  for (int job = 0; job < 3; job++) workers.submit([](Arena&) { fail("nobody hears"); });
}

TEST_P(WorkersTest, ASingleJobHasAllThreadsOfTheOneThatWaits) {
  testing::with_threads(4, [&] {
    Workers workers(arenas());
    for (int round = 0; round < 3; round++) {
      workers.submit([caller = std::this_thread::get_id()](Arena&) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_EQ(threads(), 4);
      });
      while (workers.open() > 0) workers.wait();
    }
    return 0;
  });
}

TEST(Workers, JobsAtTheSameTimeShareTheThreads) {
  testing::with_threads(4, [] {
    Arena first(1 << 20), second(1 << 20);
    Workers workers({&first, &second});
    std::barrier meet(2);
    for (int job = 0; job < 2; job++)
      workers.submit([&](Arena&) {
        EXPECT_EQ(threads(), 2);
        meet.arrive_and_wait();
      });
    while (workers.open() > 0) workers.wait();
    workers.submit([](Arena&) { EXPECT_EQ(threads(), 4); });
    while (workers.open() > 0) workers.wait();
    return 0;
  });
}

TEST(Workers, AreOnePerThreadByDefault) {
  EXPECT_EQ(testing::with_threads(3, [] { return worker_count(0); }), 3u);
  EXPECT_EQ(testing::with_threads(64, [] { return worker_count(0); }), 16u);
  EXPECT_EQ(testing::with_threads(3, [] { return worker_count(7); }), 7u);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkersTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace qkv
