// An HTTP request that is refused: a status and one line about what was wrong.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "qkv/error.h"

namespace qkv {

// After a malformed request nobody knows where the next one begins, so the connection is closed.
struct HttpError : Error {
  HttpError(int number, const std::string& message, std::string name = "", std::chrono::milliseconds retry = {})
      : Error(message), status(number), code(std::move(name)), retry_after(retry) {}

  int status;
  std::string code;                                               // for programs, such as "queue_full"; "" for none
  std::string param = {};                                         // the field of the request; "" for none
  std::chrono::milliseconds retry_after;                          // of 429 and 503; 0: not stated
  std::vector<std::pair<std::string, std::string>> headers = {};  // of the answer
};

template <class... Args>
[[noreturn]] void refuse(int status, fmt::format_string<Args...> format, Args&&... args) {
  throw HttpError(status, fmt::format(format, std::forward<Args>(args)...));
}

// The answer to a request for which an allocation has failed.
inline HttpError no_memory() {
  return {503, "the server has no memory for this request", "memory", std::chrono::seconds(1)};
}

// Refuses a field of a request with status 400.
template <class... Args>
[[noreturn]] void refuse_field(std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
  HttpError error(400, fmt::format("\"{}\" {}", name, fmt::format(format, std::forward<Args>(args)...)));
  error.param = name;
  throw error;
}

}  // namespace qkv
