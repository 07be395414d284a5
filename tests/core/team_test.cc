// The threads that help with a loop: which take part, and what becomes of them.
#include "core/system/team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::with_threads;

// Calls f(i) on n threads at once: each call waits until all have begun.
template <class F>
void on_all_threads(int n, F&& f) {
  std::atomic<int> begun = 0;
  with_threads(n, [&] {
    parallel_for(n, [&](int64_t i) {
      begun++;
      while (begun < n) std::this_thread::yield();
      f(i);
    });
    return 0;
  });
}

TEST(Team, HasAsManyThreadsAsWereSet) {
  std::vector<int> numbers(4);
  on_all_threads(4, [&](int64_t i) {
    numbers[to_size(i)] = thread_number();
    EXPECT_EQ(threads(), 4);
    EXPECT_TRUE(in_parallel());
  });
  EXPECT_EQ(std::set(numbers.begin(), numbers.end()), (std::set{0, 1, 2, 3}));
  EXPECT_EQ(thread_number(), 0);
  EXPECT_FALSE(in_parallel());
}

TEST(Team, GrowsAndShrinks) {
  for (const int n : {2, 5, 3, 1, 4}) {
    std::set<int> numbers;
    std::mutex mutex;
    on_all_threads(n, [&](int64_t) {
      const std::lock_guard lock(mutex);
      numbers.insert(thread_number());
    });
    EXPECT_EQ(std::ssize(numbers), n);
    EXPECT_EQ(*numbers.rbegin(), n - 1);
  }
}

TEST(Team, HelpsAfterItHasSlept) {
  on_all_threads(3, [](int64_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  on_all_threads(3, [](int64_t) {});
}

TEST(Team, EachThreadHasItsOwn) {
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums)
    callers.emplace_back([&sum] {
      set_threads(3);
      for (int64_t round = 0; round < 500; round++) {
        std::vector<int64_t> squares(20);
        parallel_for(20, [&](int64_t i) { squares[to_size(i)] = i * i; });
        sum += std::accumulate(squares.begin(), squares.end(), int64_t{0});
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 500 * 2470));
}

TEST(Team, LeavesSignalsToTheThreadsOfTheProgram) {
  on_all_threads(2, [](int64_t) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), thread_number() > 0);
  });
}

TEST(Team, IsReplacedAfterAFork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "skipped: ThreadSanitizer starts no threads after a fork";
#endif
  on_all_threads(3, [](int64_t) {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);  // ends the child if it waits for threads that it does not have
    on_all_threads(3, [](int64_t) {});
    std::thread([] { on_all_threads(2, [](int64_t) {}); }).join();
    std::quick_exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  on_all_threads(3, [](int64_t) {});
}

// A pool that makes its threads for each loop.
class NewThreads : public ThreadPool {
 public:
  void run(int count, const std::function<void(int)>& work) override {
    counts.push_back(count);
    std::vector<std::thread> all;
    for (int i = 1; i < count; i++) all.emplace_back(work, i);
    work(0);
    for (std::thread& thread : all) thread.join();
  }
  std::vector<int> counts;
};

TEST(Team, IsReplacedByAPool) {
  NewThreads pool;
  EXPECT_EQ(set_thread_pool(&pool), nullptr);
  std::vector<int> numbers(3);
  on_all_threads(3, [&](int64_t i) { numbers[to_size(i)] = thread_number(); });
  EXPECT_EQ(set_thread_pool(nullptr), &pool);
  EXPECT_EQ(pool.counts, std::vector{3});
  EXPECT_EQ(std::set(numbers.begin(), numbers.end()), (std::set{0, 1, 2}));
  on_all_threads(3, [](int64_t) {});
  EXPECT_EQ(pool.counts, std::vector{3});
}

}  // namespace
}  // namespace qkv
