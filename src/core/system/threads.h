// Parallel loops. Every thread flushes denormal numbers to zero inside a loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "core/function_ref.h"
#include "core/to_size.h"
#include "qkv/system.h"

namespace qkv {

// Sets flush-to-zero and denormals-are-zero on this thread for its lifetime, then restores the caller's setting.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;
};

// The number of this thread in the loop that it runs: smaller than threads(), 0 outside of loops.
int thread_number();
// Whether this thread runs a loop that other threads help with.
bool in_parallel();

// Calls work on this thread and on at most `helpers` others, on each with another thread_number. work must not throw,
// and must return only when nothing is left that it can do.
void run_together(FunctionRef<void()> work, int helpers);

// Calls f(i) once for every i in [0, n), in any order, on all threads. Its result for an i must not depend on the
// thread, so that results are the same for any number of threads. Nested calls run on one thread. After an exception of
// f, some calls are left out, and the exception, or one of several, is thrown.
template <class F>
void parallel_for(int64_t n, F&& f) {
  if (n <= 0) return;
  const int helpers = in_parallel() ? 0 : static_cast<int>(std::min<int64_t>(n, threads())) - 1;
  alignas(64) std::atomic<int64_t> next = 0;  // by itself in a cache line
  std::atomic<bool> failed = false;
  std::exception_ptr error;
  const auto work = [&]() noexcept {
    const FlushDenormals flush;
    try {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) f(i);
    } catch (...) {
      next = n;
      if (!failed.exchange(true)) error = std::current_exception();
    }
  };
  helpers > 0 ? run_together(work, helpers) : work();
  if (failed) std::rethrow_exception(error);
}

// parallel_for that makes all calls, and then throws the exception of the smallest i.
template <class F>
void parallel_for_throwing(int64_t n, F&& f) {
  std::vector<std::exception_ptr> errors(to_size(n));
  parallel_for(n, [&](int64_t i) {
    try {
      f(i);
    } catch (...) {
      errors[to_size(i)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

// Splits [0, n) into blocks of `block` (the last one shorter) and calls f(begin, end) for each. The split is
// independent of the number of threads.
template <class F>
void parallel_blocks(int64_t n, int64_t block, F&& f) {
  parallel_for((n + block - 1) / block, [&](int64_t i) { f(i * block, std::min(n, (i + 1) * block)); });
}

}  // namespace qkv
