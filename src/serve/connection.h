// One connection: reads requests, hands them to the handler one at a time, and writes the answers.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "serve/http_server.h"
#include "serve/tls.h"

namespace qkv {

class Connection : public ReplySink, public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // tls: null for a connection that is not encrypted. active: counts the connections that have a request.
  Connection(Socket socket, const TlsContext* tls, std::string client, const HttpOptions& options, HttpHandler& handler,
             std::atomic<size_t>& active);

  // Serves the connection until it ends. Everything below is called on the I/O thread, except send.
  boost::asio::awaitable<void> serve();
  void close();
  // Ends the connection after the answer that is being made; at once if there is none.
  void drain();

  void send(std::string bytes, bool last, bool broken) override;

 private:
  using Time = HttpOptions::Time;
  using Nothing = boost::asio::awaitable<void>;

  boost::asio::awaitable<bool> shake_hands();  // returns false if they fail
  Nothing read_bytes();                        // reads all the time, so that a client's leaving is noticed
  size_t read_some(char* bytes, size_t most, boost::system::error_code& error);
  boost::asio::awaitable<bool> serve_one();  // one request; returns whether another one may follow
  boost::asio::awaitable<bool> refuse_one(RequestReader& reader, const HttpError& error, std::shared_ptr<void> hold);
  boost::asio::awaitable<bool> fill(RequestReader& reader, bool head_only);  // returns false if the client left
  boost::asio::awaitable<bool> write(std::string bytes);                     // returns false if the client left
  boost::asio::awaitable<bool> answer_one(RequestReader& reader, Grant grant);
  boost::asio::awaitable<bool> write_answer(Exchange& exchange);
  Nothing linger();
  Nothing wait();
  void wake() { changed_.cancel(); }
  void set_deadline(Time time);
  void clear_deadline();
  ReplyFraming framing(const RequestHead* head) const;

  Socket socket_;
  std::optional<TlsStream> tls_;
  const std::string client_;
  const HttpOptions& options_;
  HttpHandler& handler_;
  std::atomic<size_t>& active_;
  boost::asio::steady_timer changed_, room_, deadline_;
  std::string arrived_;                     // bytes that no request has taken
  std::string answer_;                      // bytes to write
  bool answered_ = false, broken_ = false;  // the last bytes of the answer are in answer_; the answer is incomplete
  bool left_ = false, closed_ = false, draining_ = false, idle_ = true, late_ = false;
  bool ends_when_late_ = false;  // waits for the socket
};

}  // namespace qkv
