#include "qkv/server.h"

#include <exception>
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

}  // namespace

struct Server::State {
  State(std::vector<ServedRun> runs, const ServerOptions& o)
      : options(o), service(std::move(runs), o), http(http_options(o), service) {}

  const ServerOptions options;
  Service service;
  HttpServer http;
};

Server::Server(std::vector<ServedRun> runs, const ServerOptions& options)
    : state_(std::make_unique<State>(std::move(runs), options)) {}
Server::~Server() = default;

std::vector<std::string> Server::listen() {
  std::vector<std::string> addresses;
  for (const std::string& address : state_->options.listen) addresses.push_back(state_->http.listen(address));
  return addresses;
}

void Server::load() { state_->service.load(); }
void Server::serve() { state_->http.run(); }

void Server::drain() {
  state_->service.begin_draining();
  state_->http.drain();
}

void Server::cancel() { state_->service.cancel_all(); }
void Server::stop() { state_->http.stop(); }

}  // namespace qkv
