#include "serve/http/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "core/fail.h"
#include "serve/http/client_address.h"
#include "serve/http/connection.h"
#include "serve/http/out_of_memory.h"

namespace qkv {

// A socket that the server accepts connections from. Not in the unnamed namespace, because members of HttpServer::State
// have it.
struct Listener {
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

  Acceptor acceptor;
  std::string address;    // "HOST:PORT" or "unix:PATH"
  std::string path = "";  // of a socket that the server has made, and removes at its end

  bool is_local() const { return address.starts_with("unix:"); }
};

namespace {

namespace asio = boost::asio;

using asio::ip::tcp;
using Local = asio::local::stream_protocol;
using Generic = asio::generic::stream_protocol;

constexpr std::chrono::milliseconds kPause{100};  // after an accept that failed, for want of descriptors say
constexpr std::string_view kUnixPrefix = "unix:";

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

bool is_internet(const Generic::endpoint& end) {
  const int family = end.protocol().family();
  return family == AF_INET || family == AF_INET6;
}

template <class End>
End converted(const Generic::endpoint& from) {
  End end;
  end.resize(from.size());
  std::memcpy(end.data(), from.data(), from.size());
  return end;
}

std::string address_text(const tcp::endpoint& end) {
  const std::string host = end.address().to_string();
  return fmt::format("{}:{}", end.address().is_v6() ? "[" + host + "]" : host, end.port());
}

std::string address_text(const Local::endpoint& end) {
  std::string path = end.path();
  if (path.starts_with('\0')) path[0] = '@';  // a name that is no path, as Linux writes it
  return fmt::format("{}{}", kUnixPrefix, path);
}

// Returns an option of a socket; 0 for a descriptor that is none.
int socket_option(int descriptor, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : 0;
}

// Listens on "HOST:PORT" or "unix:PATH"; port 0 takes a free one. Throws Error.
Listener listen_on(asio::io_context& io, const std::string& address) {
  const bool is_path = address.starts_with(kUnixPrefix);
  try {
    if (is_path) {
      const std::string path = address.substr(kUnixPrefix.size());
      remove_dead_socket(io, path);
      return {Listener::Acceptor(io, Generic::endpoint(Local::endpoint(path))), address, path};
    }
    const auto [host, port] = host_and_port(address);
    const tcp::endpoint end = tcp::resolver(io).resolve(host, port, tcp::resolver::passive)->endpoint();
    Listener::Acceptor acceptor(io, Generic::endpoint(end));
    const auto taken = converted<tcp::endpoint>(acceptor.local_endpoint()).port();
    return {std::move(acceptor), fmt::format("{}:{}", address.substr(0, address.rfind(':')), taken)};
  } catch (const boost::system::system_error& error) {
    fail("{}: cannot listen: {}", address, error.code().message());
  }
}

// Takes a socket that listens already, which it closes at its end. Throws Error for any other descriptor.
Listener take_listener(asio::io_context& io, int descriptor) {
  const int family = socket_option(descriptor, SO_DOMAIN);
  if (socket_option(descriptor, SO_TYPE) != SOCK_STREAM || socket_option(descriptor, SO_ACCEPTCONN) == 0 ||
      (family != AF_INET && family != AF_INET6 && family != AF_UNIX))
    fail("descriptor {}: must be a stream socket of TCP or a path that listens", descriptor);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  Listener::Acceptor acceptor(io, Generic(family, 0), descriptor);
  const Generic::endpoint end = acceptor.local_endpoint();
  return {std::move(acceptor), is_internet(end) ? address_text(converted<tcp::endpoint>(end))
                                                : address_text(converted<Local::endpoint>(end))};
}

// Returns the address of a client, without its port; "unix" for one on the same machine.
std::string client_name(const Generic::socket& socket) {
  boost::system::error_code error;
  const Generic::endpoint end = socket.remote_endpoint(error);
  if (error) return "";
  return is_internet(end) ? converted<tcp::endpoint>(end).address().to_string() : "unix";
}

}  // namespace

struct HttpServer::State {
  // A connection that is open, for as long as the coroutine that serves it.
  struct Open {
    Open(State& server, const std::shared_ptr<Connection>& opened)
        : state(server), connection(opened), client(server.counted_as(opened->client())) {
      size_t& own = state.open_of[client];
      state.connections.insert(connection);  // nothing throws from here on
      own++;
      state.open++;
    }
    ~Open() {
      connection->close();
      state.open--;
      state.connections.erase(connection);
      const auto own = state.open_of.find(client);
      if (own != state.open_of.end() && --own->second == 0) state.open_of.erase(own);
    }
    State& state;
    const std::shared_ptr<Connection>& connection;
    const std::string client;
  };

  State(HttpOptions given, HttpHandler& serves, std::shared_ptr<const TlsContext> encrypts)
      : options(given), handler(serves), tls(std::move(encrypts)) {}
  ~State() {
    for (const auto& listener : listeners)
      if (!listener->path.empty()) ::unlink(listener->path.c_str());
  }

  std::string add(Listener listener);
  void accept_all();
  void unwind();
  asio::awaitable<void> accept(std::shared_ptr<Listener> listener);
  std::string counted_as(const std::string& address) const;
  bool has_room(const std::string& address) const;
  std::shared_ptr<Connection> start(const Listener& listener, Connection::Socket socket);
  void take_queue(Listener& listener);
  asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  void close_listeners();

  const HttpOptions options;
  HttpHandler& handler;
  std::shared_ptr<const TlsContext> tls;
  asio::io_context io{1};
  std::vector<std::shared_ptr<Listener>> listeners;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<std::string, size_t> open_of;  // the connections of each client
  std::atomic<size_t> open = 0, accepted = 0, refused = 0, active = 0;
};

std::string HttpServer::State::add(Listener listener) {
  listeners.push_back(std::make_shared<Listener>(std::move(listener)));
  return listeners.back()->address;
}

// Accepts where no coroutine does, which would hold the listener: at the start, and after a lack of memory.
void HttpServer::State::accept_all() {
  for (const auto& listener : listeners)
    if (listener.use_count() == 1)
      asio::co_spawn(io, accept(listener), [](const std::exception_ptr& error) {
        if (error) std::rethrow_exception(error);
      });
}

// Destroys the coroutines that had no memory to continue. Asio does that in handlers of its own.
void HttpServer::State::unwind() {
  while (!run_unless_out_of_memory([&] { io.run_for(kPause); })) {
  }
  io.restart();
}

asio::awaitable<void> HttpServer::State::accept(std::shared_ptr<Listener> listener) {
  Listener::Acceptor& acceptor = listener->acceptor;
  while (acceptor.is_open()) {
    boost::system::error_code error;
    auto socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!acceptor.is_open()) co_return;
    if (error) {
      asio::steady_timer pause(io, kPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    start(*listener, std::move(socket));
  }
}

// Returns the client whose connection one of this address is; a proxy is none.
std::string HttpServer::State::counted_as(const std::string& address) const {
  return handler.is_proxy(address) ? "" : client_of_address(address);
}

bool HttpServer::State::has_room(const std::string& address) const {
  const std::string client = counted_as(address);
  const auto own = open_of.find(client);
  return options.client_connections == 0 || own == open_of.end() || own->second < options.client_connections ||
         client.empty();
}

// Returns null for a connection that is not served.
std::shared_ptr<Connection> HttpServer::State::start(const Listener& listener, Connection::Socket socket) try {
  accepted++;
  std::string client = client_name(socket);
  if (open >= options.connections || !has_room(client)) {
    refused++;
    return nullptr;
  }
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);  // a socket with a path has no such option
  const TlsContext* encrypts = listener.is_local() ? nullptr : tls.get();
  auto connection =
      std::make_shared<Connection>(std::move(socket), encrypts, std::move(client), options, handler, active);
  asio::co_spawn(io, serve(connection), asio::detached);
  return connection;
} catch (const std::exception&) {  // no memory, say
  refused++;
  return nullptr;
}

// Clients whose connections wait in the queue of the system do not know that the server ends: each may send a request.
void HttpServer::State::take_queue(Listener& listener) {
  boost::system::error_code error;
  listener.acceptor.non_blocking(true, error);
  while (!error) {
    auto socket = listener.acceptor.accept(error);
    if (error) return;
    const auto connection = start(listener, std::move(socket));
    if (!connection) continue;
    auto timer = std::make_shared<asio::steady_timer>(io, options.last_requests);
    timer->async_wait([timer, weak = std::weak_ptr(connection)](const boost::system::error_code&) {
      if (const auto alive = weak.lock()) alive->drain();
    });
  }
}

asio::awaitable<void> HttpServer::State::serve(std::shared_ptr<Connection> connection) {
  const Open open_connection(*this, connection);
  co_await connection->serve();
}

void HttpServer::State::close_listeners() {
  boost::system::error_code ignored;
  for (const auto& listener : listeners) listener->acceptor.close(ignored);
}

HttpServer::HttpServer(HttpOptions options, HttpHandler& handler, std::shared_ptr<const TlsContext> tls)
    : state_(std::make_unique<State>(options, handler, std::move(tls))) {}

HttpServer::~HttpServer() = default;

std::string HttpServer::listen(const std::string& address) { return state_->add(listen_on(state_->io, address)); }

std::string HttpServer::take(int descriptor) { return state_->add(take_listener(state_->io, descriptor)); }

// An allocation that fails ends a handler, and the connection that it belongs to.
void HttpServer::run() {
  const auto serve = [state = state_.get()] {
    state->accept_all();
    state->io.run();
  };
  while (!run_unless_out_of_memory(serve)) state_->unwind();
}

void HttpServer::drain() {
  asio::post(state_->io, [state = state_.get()] {
    std::set<std::shared_ptr<Connection>> made;  // without those of the queue, which have time for a request
    const bool is_copied = run_unless_out_of_memory([&] { made = state->connections; });
    for (const auto& listener : state->listeners) run_unless_out_of_memory([&] { state->take_queue(*listener); });
    state->close_listeners();
    for (const auto& connection : is_copied ? made : state->connections) connection->drain();
  });
}

void HttpServer::stop() {
  asio::post(state_->io, [state = state_.get()] {
    state->close_listeners();
    for (const auto& connection : state->connections) connection->close();
  });
}

void HttpServer::set_tls(std::shared_ptr<const TlsContext> tls) {
  asio::post(state_->io, [state = state_.get(), tls = std::move(tls)] { state->tls = tls; });
}

ConnectionCounts HttpServer::counts() const {
  return {state_->open, state_->accepted, state_->refused, state_->active};
}

}  // namespace qkv
