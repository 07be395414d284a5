// An HTTP/1.1 server: listeners and connections on one I/O thread, the one that calls run.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "serve/http/exchange.h"
#include "serve/http/http_reply.h"
#include "serve/http/request_reader.h"

namespace qkv {

struct HttpOptions {
  using Time = std::chrono::milliseconds;

  HttpLimits limits = {};
  size_t connections = 1024;       // more are closed at once
  size_t client_connections = 0;   // of one client (client_of_address), unless HttpHandler::is_proxy; 0 is no limit
  size_t read_ahead = 16 << 10;    // bytes of the next requests
  size_t most_drained = 64 << 10;  // bytes of a body that nobody wants
  Time header_timeout{10'000}, body_timeout{30'000}, idle_timeout{75'000};
  Time write_timeout{30'000};  // without a byte that the client takes
  Time linger{1'000};          // for a client to read the answer before the connection is closed
  Time last_requests{500};     // for connections that were being made when the server began to drain
  Time look{1'000};            // between looks at whether an answer has been given up (Exchange::abandon)
};

// A request that is refused.
struct Refusal {
  const HttpError& error;
  const RequestHead* head = nullptr;     // null: there is no valid one
  const std::string& client;             // its address
  const std::string& id;                 // of the answer
  std::shared_ptr<void> hold = nullptr;  // what has been granted
};

// Serves requests. All functions are called on the I/O thread, and must return within half a millisecond.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Decides on a request whose head has been read, before its body is. Throws HttpError to refuse it; `refusal` then
  // gets what has been set. client: its address.
  virtual void admit(const RequestHead& head, const std::string& client, Grant& grant) = 0;
  // Answers a request, now or later.
  virtual void handle(std::shared_ptr<Exchange> exchange) = 0;
  // Returns the answer to a request that is refused, also by handle.
  virtual HttpReply refusal(const Refusal& refused) = 0;
  // Called when the answer has been sent, or the client has left before. Not called for a request that is refused.
  virtual void ended(const Exchange&) {}
  // Called when a client that has sent something has failed to agree on TLS. client: its address.
  virtual void handshake_failed(const std::string& /*client*/) {}
  // Whether many clients may have the same address: "unix", or that of a proxy.
  virtual bool is_proxy(const std::string& address) const { return address == "unix"; }
  // Whether connections stay open after an answer.
  virtual bool keeps_alive() const { return true; }
};

struct ConnectionCounts {
  size_t open = 0, accepted = 0, refused = 0;
  size_t active = 0;  // open ones with a request
};

class TlsContext;

class HttpServer {
 public:
  // The handler must outlive the server. tls: null, or encrypts all connections but those of sockets with a path.
  HttpServer(HttpOptions options, HttpHandler& handler, std::shared_ptr<const TlsContext> tls = nullptr);
  ~HttpServer();

  // Listens on "HOST:PORT" or "unix:PATH"; port 0 takes a free one. Returns the address with the port that was taken.
  // Throws Error.
  std::string listen(const std::string& address);
  // Accepts connections of a socket that listens already, and returns its address. Throws Error for any other
  // descriptor.
  std::string take(int descriptor);
  // Serves until drain has been called and the last connection has ended, or stop has been called.
  void run();

  // Any thread: accepts nothing more, closes idle connections, and finishes the answers that have been started.
  void drain();
  // Any thread: closes all connections at once.
  void stop();
  // Any thread: encrypts connections with another certificate from now on.
  void set_tls(std::shared_ptr<const TlsContext> tls);
  ConnectionCounts counts() const;  // any thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
