// The log of requests: one line for each when it ends, and the trace that it belongs to. A thread of its own writes, so
// that a log that blocks never blocks a request.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "qkv/server.h"

namespace qkv {

// The record of a request for its line in the log.
struct RequestRecord {
  std::chrono::system_clock::time_point time;  // of its end
  std::string id;                              // X-Request-Id
  std::string client;                          // the name of its key, or its address
  std::string method, route, model, outcome;
  std::string trace, span;  // "" without a trace
  int status = 0;
  int64_t received_bytes = 0, sent_bytes = 0;
  int64_t texts = 0, input_tokens = 0, output_tokens = 0;
  double seconds = 0;                                    // in all
  std::optional<double> waiting_seconds, first_seconds;  // until it started, until its first token
};

// Returns the line of a record, with its line end. Text is escaped, so that a line is always one line, and cut after
// 256 bytes. A format of none gives "".
std::string log_line(const RequestRecord& record, LogFormat format);

// Returns the line that stands for lines that were not written.
std::string dropped_line(int64_t lines, LogFormat format);

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

// Trace context of the W3C (https://www.w3.org/TR/trace-context/): which request of another program led to this one.
struct TraceContext {
  std::string trace;   // 32 hexadecimal digits in lower case, not all zeros
  std::string parent;  // 16 of them: the span of the caller
  bool sampled = false;
};

// Parses the header traceparent, of version 00. Returns nothing for any other text.
std::optional<TraceContext> parse_traceparent(std::string_view header);

// Returns a new span: 16 random hexadecimal digits, not all zeros. Any thread.
std::string new_span();

}  // namespace qkv
