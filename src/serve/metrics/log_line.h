// A request as a line of the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "qkv/server.h"

namespace qkv {

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

}  // namespace qkv
