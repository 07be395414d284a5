#include "serve/http/http_target.h"

#include <algorithm>
#include <charconv>

#include "core/ascii.h"
#include "core/json.h"
#include "serve/http/http_reply.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr size_t kMostFields = 4096;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded(std::string_view text, bool plus_is_space) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '+' && plus_is_space) {
      bytes += ' ';
    } else if (text[i] != '%') {
      bytes += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1,
                low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) refuse(400, "a % must be followed by two hexadecimal digits");
      bytes += static_cast<char>(16 * high + low);
      i += 2;
    }
  }
  if (find_invalid_utf8(bytes) < bytes.size()) refuse(400, "text must be UTF-8");
  return bytes;
}

void check_path(std::string_view path) {
  if (path.find('\0') != path.npos) refuse(400, "the path must not hold a NUL");
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (segment == "." || segment == "..") refuse(400, "the path must not have the segment {}", segment);
    begin = end + 1;
  }
}

bool is_target_byte(char c) {
  return c > ' ' && c < '\x7f' && std::string_view("\"<>\\^`{|}#").find(c) == std::string_view::npos;
}

bool starts_with_scheme(std::string_view target, std::string_view scheme) {
  return equals_ignoring_case(target.substr(0, scheme.size()), scheme);
}

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
           c == '_';
  });
}

bool is_ipv6(std::string_view address) {
  return !address.empty() &&
         std::ranges::all_of(address, [](char c) { return hex_digit(c) >= 0 || c == ':' || c == '.'; });
}

bool is_port(std::string_view port) {
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size();
}

}  // namespace

HttpTarget parse_target(std::string_view target) {
  HttpTarget parsed;
  if (target == "*") return {"", "*", {}};
  if (!std::ranges::all_of(target, is_target_byte)) refuse(400, "the target holds a byte that must be percent-encoded");
  for (const std::string_view scheme : {"http://", "https://"})
    if (starts_with_scheme(target, scheme)) {
      const std::string_view rest = target.substr(scheme.size());
      const size_t end = std::min(rest.find_first_of("/?"), rest.size());
      parsed.host = rest.substr(0, end);
      check_host(parsed.host);
      target = rest.substr(end);
      break;
    }
  const size_t question = std::min(target.find('?'), target.size());
  parsed.path = decoded(target.substr(0, question), false);
  if (question < target.size()) parsed.query = parse_form(target.substr(question + 1));
  if (parsed.path.empty() && !parsed.host.empty()) parsed.path = "/";
  if (!parsed.path.starts_with('/')) refuse(400, "the target must begin with /, or be a URL");
  check_path(parsed.path);
  if (parsed.path.size() > 1 && parsed.path.ends_with('/')) parsed.path.pop_back();
  return parsed;
}

FormFields parse_form(std::string_view text) {
  FormFields fields;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view field = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (field.empty()) continue;
    if (fields.size() == kMostFields) refuse(400, "a form must have at most {} fields", kMostFields);
    const size_t equals = std::min(field.find('='), field.size());
    fields.emplace_back(decoded(field.substr(0, equals), true),
                        decoded(field.substr(std::min(equals + 1, field.size())), true));
  }
  return fields;
}

void check_host(std::string_view host) {
  const bool is_bracketed = host.starts_with('[');
  const size_t end = std::min(is_bracketed ? host.find(']') : host.find(':'), host.size());
  const std::string_view name = host.substr(is_bracketed ? 1 : 0, is_bracketed ? end - 1 : end);
  const std::string_view port = host.substr(std::min(is_bracketed ? end + 1 : end, host.size()));
  const bool ends = !is_bracketed || end < host.size();
  if (!ends || !(is_bracketed ? is_ipv6(name) : is_name(name)) ||
      !(port.empty() || (port[0] == ':' && is_port(port.substr(1)))))
    refuse(400, "Host must be HOST or HOST:PORT (is {})", excerpt(host));
}

}  // namespace qkv
