#include "core/system/threads.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/system/limits.h"
#include "core/system/team.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace qkv {
namespace {

constexpr int kMostThreads = 1024;

int default_threads() {
  static const int count = [] {
    const char* variable = std::getenv("OMP_NUM_THREADS");
    const int given = variable ? std::atoi(variable) : 0;
    return std::min(kMostThreads, given > 0 ? given : processors());
  }();
  return count;
}

struct ThisThread {
  int threads = 0;             // 0: default_threads()
  ThreadPool* pool = nullptr;  // nullptr: its team
  int number = 0;
  bool in_parallel = false;
};
constinit thread_local ThisThread this_thread;

// A loop that several threads run.
struct Loop {
  FunctionRef<void()> work;
  int threads;

  void run_as(int number) const {
    const ThisThread before = std::exchange(this_thread, {threads, nullptr, number, true});
    work();
    this_thread = before;
  }
};

}  // namespace

void set_threads(int count) { this_thread.threads = std::clamp(count, 1, kMostThreads); }
int threads() { return this_thread.threads > 0 ? this_thread.threads : default_threads(); }
int thread_number() { return this_thread.number; }
bool in_parallel() { return this_thread.in_parallel; }

ThreadPool* set_thread_pool(ThreadPool* pool) { return std::exchange(this_thread.pool, pool); }

void run_together(FunctionRef<void()> work, int helpers) {
  const Loop loop{work, threads()};
  const auto run_as = [&](int number) { loop.run_as(number); };
  if (ThreadPool* pool = this_thread.pool) return pool->run(helpers + 1, run_as);
  Team::of_this_thread().run(run_as, helpers);
}

#if defined(__SSE2__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(static_cast<unsigned>(saved_) | 0x8040u); }
FlushDenormals::~FlushDenormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
FlushDenormals::FlushDenormals() {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" : : "r"(saved_ | (uint64_t{1} << 24)));
}
FlushDenormals::~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() {}
#endif

}  // namespace qkv
