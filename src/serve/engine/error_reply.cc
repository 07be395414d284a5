// Errors as the clients of each family expect them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "serve/engine/route.h"

namespace qkv {
namespace {

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
