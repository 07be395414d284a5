// The answer to a request, and its head as text.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace qkv
