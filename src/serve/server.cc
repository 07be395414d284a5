#include "qkv/server.h"

#include <thread>

#include "core/fail.h"
#include "core/system/start_thread.h"
#include "serve/api/site.h"
#include "serve/engine/service.h"
#include "serve/http/tls.h"

namespace qkv {
namespace {

HttpOptions http_options(const ServerOptions& o) {
  const auto time = [](double seconds) { return HttpOptions::Time(static_cast<int64_t>(1000 * seconds)); };
  HttpOptions http;
  http.connections = static_cast<size_t>(o.max_connections);
  http.client_connections = http.connections - http.connections / 4;
  http.header_timeout = time(o.header_timeout);
  http.body_timeout = time(o.body_timeout);
  http.idle_timeout = time(o.idle_timeout);
  http.write_timeout = time(o.write_timeout);
  return http;
}

std::shared_ptr<const TlsContext> tls_of(const ServerOptions& o) {
  return o.tls_cert.empty() ? nullptr : std::make_shared<TlsContext>(o.tls_cert, o.tls_key);
}

}  // namespace

struct Server::State {
  explicit State(const ServerOptions& o)
      : options(o),
        service(o),
        http(http_options(o), service, tls_of(o)),
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

std::vector<std::string> Server::listen(const std::vector<int>& sockets) {
  std::vector<std::string> wanted = state_->options.listen, addresses;
  if (wanted.empty() && sockets.empty()) wanted = {"127.0.0.1:8080"};
  for (const int socket : sockets) addresses.push_back(state_->http.take(socket));
  for (const std::string& address : wanted) addresses.push_back(state_->http.listen(address));
  if (!state_->options.metrics_listen.empty()) state_->metrics_http.listen(state_->options.metrics_listen);
  state_->service.admission().set_listeners(addresses);
  const HttpServer& http = state_->http;
  state_->service.read_connections_from(
      {[&http] { return static_cast<double>(http.counts().active); },
       [&http] { return static_cast<double>(http.counts().open - http.counts().active); },
       [&http] { return static_cast<double>(http.counts().refused); }});
  return addresses;
}

void Server::serve() {
  std::thread metrics = start_thread("server", [this] { state_->metrics_http.run(); });
  state_->http.run();
  state_->metrics_http.stop();
  metrics.join();
}

std::vector<std::string> Server::load() { return state_->service.load(); }

std::vector<std::string> Server::reload() {
  std::vector<std::string> lines = state_->service.reload();
  try {
    state_->http.set_tls(tls_of(state_->options));
  } catch (const Error& error) {
    lines.emplace_back(error.what());
  }
  return lines;
}

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
