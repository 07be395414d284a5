// The page of the server.
#include "serve/api/families.h"
#include "serve/api/page.h"
#include "serve/engine/service.h"
#include "serve/http/exchange.h"

namespace qkv {
namespace {

HttpReply answer_page(const Service& service, const Exchange&) {
  if (service.options().no_page) return error_reply(Family::native, HttpError(404, "the page is off"));
  return {200,
          "text/html; charset=utf-8",
          std::string(server_page()),
          {{"Content-Security-Policy", page_security_policy()},
           {"Referrer-Policy", "no-referrer"},
           {"Cross-Origin-Opener-Policy", "same-origin"}}};
}

}  // namespace

std::span<const Route> page_routes() {
  static const Route routes[] = {
      {"GET", "/", Family::native, nullptr, BodyType::none, ModelUse::none, true, answer_page}};
  return routes;
}

}  // namespace qkv
