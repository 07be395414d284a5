#include "serve/http_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>

#include "core/fail.h"
#include "serve/connection.h"

namespace qkv {
namespace {

namespace asio = boost::asio;

using asio::ip::tcp;
using Local = asio::local::stream_protocol;

constexpr std::chrono::milliseconds kPause{100};  // after an accept that failed, for want of descriptors say

// Removes a socket whose server has died: nobody accepts there.
void remove_dead_socket(asio::io_context& io, const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  boost::system::error_code error;
  Local::socket(io).connect(Local::endpoint(path), error);
  if (error == asio::error::connection_refused) ::unlink(path.c_str());
}

std::pair<std::string, std::string> host_and_port(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0 || colon + 1 == address.size())
    fail("listen must be HOST:PORT or unix:PATH (is \"{}\")", address);
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

std::string name_of(const tcp::socket& socket) {
  boost::system::error_code error;
  const tcp::endpoint end = socket.remote_endpoint(error);
  return error ? "" : end.address().to_string();
}
std::string name_of(const Local::socket&) { return "unix"; }

void prepare(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
}
void prepare(Local::socket&) {}

}  // namespace

struct HttpServer::State {
  State(HttpOptions given, HttpHandler& serves) : options(given), handler(serves) {}
  ~State() {
    for (const std::string& path : paths) ::unlink(path.c_str());
  }

  std::string listen_on_path(const std::string& path);
  std::string listen_on_port(const std::string& address);
  template <class Acceptor>
  asio::awaitable<void> accept(std::shared_ptr<Acceptor> acceptor);
  template <class Socket>
  std::shared_ptr<Connection> start(Socket socket);
  template <class Acceptor>
  void take_queue(Acceptor& acceptor);
  asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  void close_listeners();

  const HttpOptions options;
  HttpHandler& handler;
  asio::io_context io{1};
  std::vector<std::shared_ptr<tcp::acceptor>> ports;
  std::vector<std::shared_ptr<Local::acceptor>> locals;
  std::vector<std::string> paths;
  std::set<std::shared_ptr<Connection>> connections;
  std::atomic<size_t> open = 0, accepted = 0, refused = 0, active = 0;
};

std::string HttpServer::State::listen_on_path(const std::string& path) {
  remove_dead_socket(io, path);
  try {
    locals.push_back(std::make_shared<Local::acceptor>(io, Local::endpoint(path)));
  } catch (const boost::system::system_error& error) {
    fail("unix:{}: cannot listen: {}", path, error.code().message());
  }
  paths.push_back(path);
  asio::co_spawn(io, accept(locals.back()), asio::detached);
  return "unix:" + path;
}

std::string HttpServer::State::listen_on_port(const std::string& address) {
  const auto [host, port] = host_and_port(address);
  try {
    const tcp::endpoint end = tcp::resolver(io).resolve(host, port, tcp::resolver::passive)->endpoint();
    ports.push_back(std::make_shared<tcp::acceptor>(io, end));
    asio::co_spawn(io, accept(ports.back()), asio::detached);
    return fmt::format("{}:{}", address.substr(0, address.rfind(':')), ports.back()->local_endpoint().port());
  } catch (const boost::system::system_error& error) {
    fail("{}: cannot listen: {}", address, error.code().message());
  }
}

template <class Acceptor>
asio::awaitable<void> HttpServer::State::accept(std::shared_ptr<Acceptor> acceptor) {
  while (acceptor->is_open()) {
    boost::system::error_code error;
    auto socket = co_await acceptor->async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!acceptor->is_open()) co_return;
    if (error) {
      asio::steady_timer pause(io, kPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    start(std::move(socket));
  }
}

template <class Socket>
std::shared_ptr<Connection> HttpServer::State::start(Socket socket) {
  accepted++;
  if (open >= options.connections) {
    refused++;
    return nullptr;
  }
  prepare(socket);
  std::string client = name_of(socket);
  auto connection = std::make_shared<Connection>(std::move(socket), std::move(client), options, handler, active);
  asio::co_spawn(io, serve(connection), asio::detached);
  return connection;
}

// Clients whose connections wait in the queue of the system do not know that the server ends: each may send a request.
template <class Acceptor>
void HttpServer::State::take_queue(Acceptor& acceptor) {
  boost::system::error_code error;
  acceptor.non_blocking(true, error);
  while (!error) {
    auto socket = acceptor.accept(error);
    if (error) return;
    const auto connection = start(std::move(socket));
    if (!connection) continue;
    auto timer = std::make_shared<asio::steady_timer>(io, options.last_requests);
    timer->async_wait([timer, weak = std::weak_ptr(connection)](const boost::system::error_code&) {
      if (const auto alive = weak.lock()) alive->drain();
    });
  }
}

asio::awaitable<void> HttpServer::State::serve(std::shared_ptr<Connection> connection) {
  connections.insert(connection);
  open++;
  try {
    co_await connection->serve();
  } catch (const std::exception&) {  // no memory, say
    connection->close();
  }
  open--;
  connections.erase(connection);
}

void HttpServer::State::close_listeners() {
  boost::system::error_code ignored;
  for (const auto& acceptor : ports) acceptor->close(ignored);
  for (const auto& acceptor : locals) acceptor->close(ignored);
}

HttpServer::HttpServer(HttpOptions options, HttpHandler& handler) : state_(std::make_unique<State>(options, handler)) {}

HttpServer::~HttpServer() = default;

std::string HttpServer::listen(const std::string& address) {
  constexpr std::string_view kUnix = "unix:";
  return address.starts_with(kUnix) ? state_->listen_on_path(address.substr(kUnix.size()))
                                    : state_->listen_on_port(address);
}

void HttpServer::run() { state_->io.run(); }

void HttpServer::drain() {
  asio::post(state_->io, [state = state_.get()] {
    const auto connections = state->connections;
    for (const auto& acceptor : state->ports) state->take_queue(*acceptor);
    for (const auto& acceptor : state->locals) state->take_queue(*acceptor);
    state->close_listeners();
    for (const auto& connection : connections) connection->drain();
  });
}

void HttpServer::stop() {
  asio::post(state_->io, [state = state_.get()] {
    state->close_listeners();
    for (const auto& connection : std::set(state->connections)) connection->close();
  });
}

ConnectionCounts HttpServer::counts() const {
  return {state_->open, state_->accepted, state_->refused, state_->active};
}

}  // namespace qkv
