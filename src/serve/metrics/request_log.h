// The log of requests: one line for each when it ends. A thread of its own writes, so that a log that blocks never
// blocks a request.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "serve/metrics/log_line.h"

namespace qkv {

struct LogLimits {
  int64_t lines_per_second = 1000;
  size_t queue = 4096;                           // lines that wait to be written
  std::chrono::milliseconds last_writes{1'000};  // for what waits when the log is destroyed
};

class RequestLog {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  // Writes to a file descriptor, which stays open. `now` gives the time that lines per second are counted by.
  RequestLog(LogFormat format, int file, const LogLimits& limits = {}, Now now = Clock::now);
  // Waits for the lines to be written, but not for a log that blocks.
  ~RequestLog();

  // Any thread; never waits. Lines beyond the limits are counted instead, and a line says later how many there were.
  void write(RequestRecord record);
  int64_t dropped() const;  // lines that were not written

 private:
  struct State;
  std::shared_ptr<State> state_;  // also of the thread, which may outlive the log if it cannot write
};

}  // namespace qkv
