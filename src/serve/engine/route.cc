#include "serve/engine/route.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "serve/engine/api_family.h"

namespace qkv {
namespace {

std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool matches(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& path,
             std::vector<std::string>& parts) {
  if (pattern.size() != path.size()) return false;
  for (size_t i = 0; i < path.size(); i++) {
    if (pattern[i] == "{}")
      parts.emplace_back(path[i]);
    else if (pattern[i] != path[i])
      return false;
  }
  return true;
}

// ---- Errors

using nlohmann::ordered_json;

std::string_view type_of(const HttpError& error) {
  switch (error.status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "overloaded_error";
    case 500:
      return "server_error";
    case 503:
      return "unavailable_error";
    case 504:
      return "timeout";
    default:
      return "invalid_request_error";
  }
}

// A message may quote a part of a text, which need not be whole characters.
std::string text_of(const ordered_json& error) {
  return error.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

// TEI's name for the kind of an error.
std::string_view tei_type(const HttpError& error) {
  if (error.status == 424 || error.status == 500) return "Backend";
  if (error.status == 429) return "Overloaded";
  if (error.status == 503 || error.status == 504) return "Unhealthy";
  return error.code == "Empty" ? "Empty" : "Validation";
}

std::string body_of(Family family, const HttpError& error) {
  const std::string message = error.what();
  switch (family) {
    case Family::libretranslate:
      return text_of({{"error", error.status == 429 ? "Slowdown: " + message : message}});
    case Family::tei:
      return text_of(
          {{"error", error.status == 429 ? "Model is overloaded" : message}, {"error_type", tei_type(error)}});
    case Family::gorse:
      return message + "\n";
    default:
      return error_json(error);
  }
}

}  // namespace

RouteMatch find_route(std::string_view method, std::string_view path) {
  const std::vector<std::string_view> wanted = segments(path);
  RouteMatch found;
  for (const ApiFamily& family : api_families())
    for (const Route& route : family.routes()) {
      std::vector<std::string> parts;
      if (!matches(segments(route.path), wanted, parts)) continue;
      if (route.method == method || (route.method == "GET" && method == "HEAD"))
        return {&route, std::move(parts), "", route.family};
      if (found.allowed.empty()) found.family = route.family;
      found.allowed += fmt::format("{}{}", found.allowed.empty() ? "" : ", ", route.method);
    }
  return found;
}

std::string error_json(const HttpError& error) {
  return text_of({{"error",
                   {{"message", error.what()},
                    {"type", type_of(error)},
                    {"param", text_or_null(error.param)},
                    {"code", text_or_null(error.code)}}}});
}

HttpReply error_reply(Family family, const HttpError& error) {
  HttpReply reply{error.status, family == Family::gorse ? "text/plain; charset=utf-8" : "application/json",
                  body_of(family, error), error.headers};
  if (error.retry_after.count() > 0) {
    const auto seconds = (error.retry_after.count() + 999) / 1000;
    reply.headers.emplace_back("Retry-After", std::to_string(seconds));
    reply.headers.emplace_back("retry-after-ms", std::to_string(error.retry_after.count()));
  }
  // The official OpenAI client would repeat these by itself, and bring the same work again.
  if (error.status == 500 || error.status == 504) reply.headers.emplace_back("x-should-retry", "false");
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

}  // namespace qkv
