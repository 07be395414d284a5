#include "serve/api/metrics_handler.h"

#include "serve/api/families.h"
#include "serve/engine/service.h"

namespace qkv {
namespace {

HttpReply metrics_reply(const Service& service) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", service.metrics_text()};
}

HttpReply answer_metrics(const Service& service, const Exchange&) {
  if (!service.options().metrics_listen.empty()) return error_reply(Family::native, HttpError(404, "no such route"));
  return metrics_reply(service);
}

}  // namespace

std::span<const Route> metrics_routes() {
  static const Route routes[] = {
      {"GET", "/metrics", Family::native, nullptr, BodyType::none, ModelUse::none, false, answer_metrics}};
  return routes;
}

void MetricsHandler::admit(const RequestHead& head, const std::string&, Grant&) {
  if (head.target.path != "/metrics") refuse(404, "no such route");
  if (head.method != "GET" && head.method != "HEAD") refuse(405, "the route takes GET");
}

void MetricsHandler::handle(std::shared_ptr<Exchange> exchange) { exchange->reply(metrics_reply(service_)); }

HttpReply MetricsHandler::refusal(const Refusal& refused) { return error_reply(Family::native, refused.error); }

}  // namespace qkv
