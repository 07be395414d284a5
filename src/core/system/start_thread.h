// The error of a system that has no thread to give.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "core/fail.h"

namespace qkv {

// Calls f, which starts threads, and returns its result. Throws Error, which begins with `what`, if one cannot be
// started.
template <class F>
decltype(auto) starting_threads(const char* what, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const std::system_error& error) {
    fail("{}: a thread cannot be started: {}", what, error.code().message());
  }
}

template <class F>
std::thread start_thread(const char* what, F&& f) {
  return starting_threads(what, [&] { return std::thread(std::forward<F>(f)); });
}

}  // namespace qkv
