// Reads one HTTP/1.1 request from bytes that arrive in pieces. Boost.Beast parses; this adds the limits, and refuses
// what Beast takes although other programs might read it as another request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/http_target.h"

namespace qkv {

struct HttpLimits {
  size_t request_line = 8 << 10, head = 16 << 10, trailers = 4 << 10, chunk_line = 512;  // bytes
  size_t fields = 100;
};

// The request line and the headers.
struct RequestHead {
  std::string method;  // "GET": one that HTTP defines
  HttpTarget target;
  std::string host;  // of the target or the header Host; "" if HTTP/1.0 gives none
  int minor = 1;     // of HTTP/1.x
  bool keep_alive = true, chunked = false, expects_continue = false;
  std::optional<uint64_t> content_length;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case

  // Returns the value of the first header of this name, in lower case; "" if there is none.
  std::string_view find(std::string_view name) const;
  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

class RequestReader {
 public:
  explicit RequestReader(const HttpLimits& limits = {});
  ~RequestReader();

  // Takes bytes that follow those taken before, and returns how many belong to this request. It stops after the head
  // until read_body is called, and after the body. Throws HttpError.
  size_t put(std::string_view bytes);

  bool has_head() const { return head_.has_value(); }
  const RequestHead& head() const { return *head_; }
  bool awaits_body() const { return has_head() && !reads_body_; }
  // Reads the body, which may have this many bytes. Called once, after the head.
  void read_body(uint64_t most);
  bool is_done() const;  // head and body have been read
  std::string& body();

 private:
  struct Parser;

  size_t put_head(std::string_view bytes);
  size_t put_body(std::string_view bytes);
  void parse_head();

  const HttpLimits limits_;
  std::string pending_;  // bytes of the head, or of a line between chunks, that is not complete
  size_t scanned_ = 0;   // bytes of pending_ without the end of the head
  std::unique_ptr<Parser> parser_;
  std::optional<RequestHead> head_;
  bool reads_body_ = false;
};

}  // namespace qkv
