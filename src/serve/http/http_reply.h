// The answer to a request and its head as text, and the error of a request that is refused.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qkv/error.h"

namespace qkv {

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// How an answer is sent.
struct ReplyFraming {
  std::string id;                     // X-Request-Id
  int minor = 1;                      // of HTTP/1.x, as the request says
  bool keep_alive = true;             // the connection stays open
  std::optional<size_t> length = {};  // bytes of the body; nullopt: a stream, in chunks for HTTP/1.1
};

// Returns the status line and the headers, with the empty line after them.
std::string head_text(const HttpReply& reply, const ReplyFraming& framing);

// Returns bytes of a stream as a chunk; an empty text gives the last chunk.
std::string chunk_text(const std::string& bytes);

// The error of a request that is refused: a status and one line about what was wrong. After a malformed request nobody
// knows where the next one begins, so the connection is closed.
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
