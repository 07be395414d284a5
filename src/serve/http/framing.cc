#include "serve/http/framing.h"

#include <algorithm>
#include <charconv>

#include "core/json.h"
#include "serve/http/http_error.h"

namespace qkv {
namespace {

constexpr size_t kMostDigits = 19;  // of Content-Length: those of 2^63 - 1; some programs refuse more, even zeros

bool same_word(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
}

// Returns the only header of this name, or null. Throws HttpError 400 if there are several.
const std::string* only(const RequestHead& head, std::string_view name) {
  const std::string* value = nullptr;
  for (const auto& [field, text] : head.fields) {
    if (field != name) continue;
    if (value) refuse(400, "there must be at most one header {}", name);
    value = &text;
  }
  return value;
}

void check_request_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  const std::string_view version = line.substr(last == line.npos ? line.size() : last + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (first == line.npos || first == last || line.find(' ', first + 1) != last || version.size() != 8 ||
      !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' || !is_digit(version[7]))
    refuse(400, "the request line must be METHOD TARGET VERSION");
}

void set_body(RequestHead& head) {
  const std::string *length = only(head, "content-length"), *coding = only(head, "transfer-encoding");
  if (length && coding) refuse(400, "Content-Length and Transfer-Encoding exclude each other");
  if (coding) {
    if (head.minor == 0) refuse(400, "Transfer-Encoding requires HTTP/1.1");
    if (!same_word(*coding, "chunked"))
      refuse(coding->find(',') != std::string::npos ? 400 : 501, "Transfer-Encoding must be chunked (is {})",
             excerpt(*coding));
    head.chunked = true;
  }
  if (!length) return;
  int64_t size = 0;
  const auto [end, error] = std::from_chars(length->data(), length->data() + length->size(), size);
  const bool is_number = error == std::errc() && end == length->data() + length->size() && !length->starts_with('-');
  if (!is_number || length->size() > kMostDigits)
    refuse(400, "Content-Length must be a number of bytes (is {})", excerpt(*length));
  head.content_length = static_cast<uint64_t>(size);
}

void set_host(RequestHead& head) {
  const std::string* host = only(head, "host");
  if (!host && head.minor == 1) refuse(400, "HTTP/1.1 requires the header Host");
  if (host) check_host(*host);
  head.host = !head.target.host.empty() ? head.target.host : host ? *host : "";
}

}  // namespace

size_t find_head_end(std::string_view bytes, size_t& scanned, const HttpLimits& limits) {
  const size_t empty_line = bytes.starts_with("\r\n") ? 2 : 0;
  const size_t line_end = bytes.find('\n', empty_line);
  if (std::min(line_end, bytes.size()) - std::min(empty_line, bytes.size()) > limits.request_line)
    refuse(414, "the request line must have at most {} bytes", limits.request_line);
  const size_t end = bytes.find("\r\n\r\n", std::max(empty_line, scanned - std::min<size_t>(scanned, 3)));
  const std::string_view head = bytes.substr(0, std::min(end, limits.head));  // what follows may be a body
  for (size_t at = head.find('\n', scanned); at != head.npos; at = head.find('\n', at + 1))
    if (at == 0 || head[at - 1] != '\r') refuse(400, "a line must end with CRLF");
  if (std::min(end, bytes.size()) > limits.head) refuse(431, "headers must have at most {} bytes", limits.head);
  scanned = bytes.size();
  return end == bytes.npos ? 0 : end + 4;
}

void check_lines(std::string_view head, const HttpLimits& limits) {
  size_t fields = 0;
  for (size_t begin = 0; begin < head.size();) {
    const size_t end = head.find("\r\n", begin);
    const std::string_view line = head.substr(begin, end - begin);
    for (const char c : line)
      if ((c >= 0 && c < ' ' && c != '\t') || c == '\x7f')
        refuse(400, "a line must end with CRLF and hold no controls");
    if (begin == 0) check_request_line(line);
    if (line.starts_with(' ') || line.starts_with('\t')) refuse(400, "a header must not continue on the next line");
    if (begin > 0 && !line.empty() && ++fields > limits.fields)
      refuse(431, "there must be at most {} headers", limits.fields);
    begin = end + 2;
  }
}

void check_framing(RequestHead& head) {
  set_body(head);
  set_host(head);
  const std::string* expectation = only(head, "expect");
  if (!expectation) return;
  if (!same_word(*expectation, "100-continue"))
    refuse(417, "Expect must be 100-continue (is {})", excerpt(*expectation));
  head.expects_continue = head.minor == 1;
}

}  // namespace qkv
