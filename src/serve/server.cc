#include "qkv/server.h"

#include <thread>

#include "core/fail.h"
#include "serve/service.h"

namespace qkv {
namespace {

HttpOptions http_options(const ServerOptions& o) {
  const auto time = [](double seconds) { return HttpOptions::Time(static_cast<int64_t>(1000 * seconds)); };
  HttpOptions http;
  http.connections = static_cast<size_t>(o.max_connections);
  http.header_timeout = time(o.header_timeout);
  http.body_timeout = time(o.body_timeout);
  http.idle_timeout = time(o.idle_timeout);
  http.write_timeout = time(o.write_timeout);
  return http;
}

HttpReply metrics_reply(const Service& service) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", service.metrics_text()};
}

HttpReply answer_metrics(const Service& service, const Exchange&) {
  if (!service.options().metrics_listen.empty()) return error_reply(Family::native, HttpError(404, "no such route"));
  return metrics_reply(service);
}

// Answers /metrics on an address of its own.
class MetricsHandler : public HttpHandler {
 public:
  explicit MetricsHandler(const Service& service) : service_(service) {}

  Grant admit(const RequestHead& head, const std::string&) override {
    if (head.target.path != "/metrics") refuse(404, "no such route");
    if (head.method != "GET" && head.method != "HEAD") refuse(405, "the route takes GET");
    return {};
  }
  void handle(std::shared_ptr<Exchange> exchange) override { exchange->reply(metrics_reply(service_)); }
  HttpReply refusal(const HttpError& error, const RequestHead*, const std::string&) override {
    return error_reply(Family::native, error);
  }

 private:
  const Service& service_;
};

}  // namespace

std::span<const Route> metrics_routes() {
  static const Route routes[] = {{"GET", "/metrics", Family::native, nullptr, BodyType::none, false, answer_metrics}};
  return routes;
}

struct Server::State {
  explicit State(const ServerOptions& o)
      : options(o),
        service(o),
        http(http_options(o), service),
        metrics_handler(service),
        metrics_http(http_options(o), metrics_handler) {}

  const ServerOptions options;
  Service service;
  HttpServer http;
  MetricsHandler metrics_handler;
  HttpServer metrics_http;
};

Server::Server(const ServerOptions& options) : state_(std::make_unique<State>(options)) {}
Server::~Server() = default;

std::vector<std::string> Server::listen() {
  std::vector<std::string> wanted = state_->options.listen, addresses;
  if (wanted.empty()) wanted = {"127.0.0.1:8080"};
  for (const std::string& address : wanted) addresses.push_back(state_->http.listen(address));
  if (!state_->options.metrics_listen.empty()) state_->metrics_http.listen(state_->options.metrics_listen);
  state_->service.set_listeners(addresses);
  const HttpServer& http = state_->http;
  state_->service.read_connections_from(
      {[&http] { return static_cast<double>(http.counts().active); },
       [&http] { return static_cast<double>(http.counts().open - http.counts().active); },
       [&http] { return static_cast<double>(http.counts().refused); }});
  return addresses;
}

void Server::serve() {
  std::thread metrics([this] { state_->metrics_http.run(); });
  state_->http.run();
  state_->metrics_http.stop();
  metrics.join();
}

void Server::load() { state_->service.load(); }
std::vector<std::string> Server::reload() { return state_->service.reload(); }
void Server::refuse_ready() { state_->service.begin_draining(); }

void Server::drain() {
  state_->service.begin_draining();
  state_->http.drain();
}

int64_t Server::cancel() { return state_->service.cancel_all(); }

void Server::stop() {
  state_->http.stop();
  state_->metrics_http.stop();
}

}  // namespace qkv
