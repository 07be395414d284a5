// Processor time of work in a test: unlike the time that passes, it does not grow while other programs run.
#pragma once

#include <time.h>

#include <functional>

namespace qkv::testing {

// Returns the seconds that this thread works for, those of threads that it starts not included.
inline double processor_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

}  // namespace qkv::testing
