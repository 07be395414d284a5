// Whether the server lives, and whether it is ready: routes that never wait.
#include "serve/api/families.h"
#include "serve/engine/service.h"
#include "serve/http/exchange.h"

namespace qkv {
namespace {

HttpReply unavailable(const char* message) {
  return {503, "application/json",
          fmt::format(R"({{"error":{{"code":503,"message":"{}","type":"unavailable_error"}}}})", message)};
}

HttpReply health_live(const Service& service, const Exchange&) {
  if (service.is_stuck()) return unavailable("A step has taken a minute");
  return {200, "application/json", R"({"status":"ok"})"};
}

HttpReply health_ready(const Service& service, const Exchange& exchange) {
  if (service.is_loading()) return unavailable("Loading model");
  if (service.is_draining()) return unavailable("Draining");
  return health_live(service, exchange);
}

HttpReply ping(const Service&, const Exchange&) { return {200, "text/plain; charset=utf-8", "pong\n"}; }

// In the form of Gorse.
HttpReply gorse_health(const Service& service, const Exchange&) {
  const bool ready = !service.is_loading() && !service.is_draining();
  return {ready ? 200 : 503, "application/json",
          fmt::format(R"({{"Ready":{},"DataStoreError":null,"CacheStoreError":null,"DataStoreConnected":{},)"
                      R"("CacheStoreConnected":{}}})",
                      ready, ready, ready)};
}

HttpReply gorse_live(const Service&, const Exchange&) {
  return {200, "application/json",
          R"({"Ready":true,"DataStoreError":null,"CacheStoreError":null,"DataStoreConnected":true,)"
          R"("CacheStoreConnected":true})"};
}

}  // namespace

std::span<const Route> health_routes() {
  static const Route routes[] = {
      {"GET", "/health", Family::native, nullptr, BodyType::none, ModelUse::none, true, health_ready},
      {"GET", "/health/ready", Family::native, nullptr, BodyType::none, ModelUse::none, true, health_ready},
      {"GET", "/health/live", Family::native, nullptr, BodyType::none, ModelUse::none, true, health_live},
      {"GET", "/ping", Family::native, nullptr, BodyType::none, ModelUse::none, true, ping},
      {"GET", "/api/health/ready", Family::gorse, nullptr, BodyType::none, ModelUse::none, true, gorse_health},
      {"GET", "/api/health/live", Family::gorse, nullptr, BodyType::none, ModelUse::none, true, gorse_live},
  };
  return routes;
}

}  // namespace qkv
