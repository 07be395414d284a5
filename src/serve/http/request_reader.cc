#include "serve/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "core/json.h"
#include "serve/http/framing.h"
#include "serve/http/http_error.h"

namespace qkv {
namespace {

namespace http = boost::beast::http;

using ErrorCode = boost::beast::error_code;

[[noreturn]] void refuse_body(const ErrorCode& error) {
  if (error == http::error::body_limit) refuse(413, "the body is too large");
  refuse(400, "malformed body: {}", error.message());
}

void check_trailers(std::string_view lines) {
  for (const char* continued : {"\r\n ", "\r\n\t"})
    if (lines.find(continued) != lines.npos)
      refuse(400, "malformed body: a trailer must not continue on the next line");
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return result;
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
    head.fields.emplace_back(lower(std::string(field.name_string())), std::string(field.value()));
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
