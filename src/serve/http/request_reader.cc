#include "serve/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <string_view>

#include "core/ascii.h"
#include "core/json.h"
#include "serve/http/http_reply.h"

namespace qkv {
namespace {

namespace http = boost::beast::http;

using ErrorCode = boost::beast::error_code;

// ---- Framing: where a request begins and ends. Programs that disagree about that, such as a proxy and the server
// behind it, can be made to see requests that nobody sent (request smuggling), so everything that RFC 9112 leaves open
// is refused.

constexpr size_t kMostDigits = 19;  // of Content-Length: those of 2^63 - 1; some programs refuse more, even zeros

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
    if (!equals_ignoring_case(*coding, "chunked"))
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

// Returns the number of bytes of the head, including its empty line; 0 if it is not complete. `scanned` is 0 in the
// first call, and counts the bytes seen. Throws HttpError 414 and 431 for a head that is too long.
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

// Checks the lines of a complete head. Throws HttpError 400 for a line end that is not CRLF, control characters, a
// request line that is not "METHOD TARGET HTTP/d.d", and a header that continues on the next line; 431 for too many
// headers.
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

// Sets host, content_length, chunked and expects_continue from the headers. Throws HttpError 400 if they do not say
// clearly how long the body is and whom the request is for, 417 for an unknown expectation, and 501 for a coding that
// is not chunked.
void check_framing(RequestHead& head) {
  set_body(head);
  set_host(head);
  const std::string* expectation = only(head, "expect");
  if (!expectation) return;
  if (!equals_ignoring_case(*expectation, "100-continue"))
    refuse(417, "Expect must be 100-continue (is {})", excerpt(*expectation));
  head.expects_continue = head.minor == 1;
}

// ---- Body

[[noreturn]] void refuse_body(const ErrorCode& error) {
  if (error == http::error::body_limit) refuse(413, "the body is too large");
  refuse(400, "malformed body: {}", error.message());
}

void check_trailers(std::string_view lines) {
  for (const char* continued : {"\r\n ", "\r\n\t"})
    if (lines.find(continued) != lines.npos)
      refuse(400, "malformed body: a trailer must not continue on the next line");
}

}  // namespace

struct RequestReader::Parser : http::request_parser<http::string_body> {
  Parser() { on_chunk_header(check_chunk); }

  // Beast adds trailers to the headers; they are dropped, because the head has been copied before.
  std::function<void(uint64_t, boost::beast::string_view, ErrorCode&)> check_chunk =
      [](uint64_t, boost::beast::string_view extensions, ErrorCode& error) {
        const auto is_refused = [](char c) { return (c >= 0 && c <= ' ') || c == '\x7f'; };
        if (extensions.size() > 256 || std::any_of(extensions.begin(), extensions.end(), is_refused))
          error = http::error::bad_chunk_extension;
      };
};

RequestReader::RequestReader(const HttpLimits& limits) : limits_(limits), parser_(std::make_unique<Parser>()) {
  parser_->header_limit(static_cast<uint32_t>(limits.head));
  parser_->body_limit(boost::none);  // until read_body
}

RequestReader::~RequestReader() = default;

bool RequestReader::is_done() const { return reads_body_ && parser_->is_done(); }

std::string& RequestReader::body() { return parser_->get().body(); }

size_t RequestReader::put(std::string_view bytes) {
  if (!has_head()) return put_head(bytes);
  return reads_body_ && !parser_->is_done() ? put_body(bytes) : 0;
}

size_t RequestReader::put_head(std::string_view bytes) {
  const size_t before = pending_.size();
  pending_ += bytes.substr(0, limits_.head + 4 - std::min(before, limits_.head));
  const size_t end = find_head_end(pending_, scanned_, limits_);
  if (end == 0) return pending_.size() - before;
  pending_.resize(end);
  parse_head();
  pending_.clear();
  return end - before;
}

void RequestReader::parse_head() {
  std::string_view bytes = pending_;
  if (bytes.starts_with("\r\n")) bytes.remove_prefix(2);  // an empty line before a request is allowed
  check_lines(bytes, limits_);
  ErrorCode error;
  parser_->put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  const auto& message = parser_->get();
  if (error == http::error::bad_version) refuse(505, "the version must be HTTP/1.0 or HTTP/1.1");
  if (error && error != http::error::need_more) refuse(400, "malformed request: {}", error.message());
  if (!parser_->is_header_done()) refuse(400, "malformed request");
  if (message.version() != 10 && message.version() != 11) refuse(505, "the version must be HTTP/1.0 or HTTP/1.1");
  if (message.method() == http::verb::unknown)
    refuse(501, "unknown method {}", excerpt(std::string(message.method_string())));

  RequestHead head;
  head.method = std::string(message.method_string());
  head.minor = static_cast<int>(message.version() - 10);
  head.target = parse_target(std::string_view(message.target().data(), message.target().size()));
  for (const auto& field : message)
    head.fields.emplace_back(ascii_lower(std::string(field.name_string())), std::string(field.value()));
  head.keep_alive = parser_->keep_alive();
  check_framing(head);
  head_ = std::move(head);
}

void RequestReader::read_body(uint64_t most) {
  if (head_->content_length.value_or(0) > most)
    refuse(413, "the body must have at most {} bytes (has {})", most, *head_->content_length);
  parser_->body_limit(most);
  reads_body_ = true;
}

size_t RequestReader::put_body(std::string_view bytes) {
  const size_t before = pending_.size();
  const bool joined = before > 0;
  if (joined) pending_ += bytes;
  const std::string_view all = joined ? std::string_view(pending_) : bytes;
  size_t used = 0;
  ErrorCode error;
  while (used < all.size() && !parser_->is_done()) {  // one piece of the body, or one line and perhaps the trailers
    const size_t length = body().size(),
                 step = parser_->put(boost::asio::buffer(all.data() + used, all.size() - used), error);
    used += step;
    if (error == http::error::need_more) break;
    if (error) refuse_body(error);
    const size_t most = limits_.chunk_line + (parser_->is_done() ? limits_.trailers : 0);
    if (body().size() == length && step > most)
      refuse(400, "malformed body: the line of a chunk, or the trailers, are too long");
    if (parser_->is_done() && head_->chunked) check_trailers(all.substr(used - step, step));
  }
  if (parser_->is_done()) return used - before;
  const size_t rest = all.size() - used;
  if (rest > limits_.trailers + limits_.chunk_line)
    refuse(400, "malformed body: the line of a chunk, or the trailers, are too long");
  pending_ = std::string(all.substr(used));
  return bytes.size();
}

std::string_view RequestHead::find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &std::pair<std::string, std::string>::first);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace qkv
