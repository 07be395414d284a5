#include "serve/http/http_reply.h"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <ctime>

namespace qkv {
namespace {

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts)};  // in the locale "C"
}

}  // namespace

std::string head_text(const HttpReply& reply, const ReplyFraming& framing) {
  const std::string reason(boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(reply.status)));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", reply.status, reason, date_now());
  if (framing.length)
    text += fmt::format("Content-Length: {}\r\n", *framing.length);
  else if (framing.minor == 1)
    text += "Transfer-Encoding: chunked\r\n";
  if (!reply.type.empty()) text += fmt::format("Content-Type: {}\r\n", reply.type);
  text += fmt::format("X-Request-Id: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n", framing.id);
  for (const auto& [name, value] : reply.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (!framing.keep_alive)
    text += "Connection: close\r\n";
  else if (framing.minor == 0)
    text += "Connection: keep-alive\r\n";
  return text + "\r\n";
}

std::string chunk_text(const std::string& bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

}  // namespace qkv
