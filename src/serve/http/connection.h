// One connection: reads requests, hands them to the handler one at a time, and writes the answers.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "serve/http/byte_stream.h"
#include "serve/http/http_server.h"

namespace qkv {

class Connection : public ReplySink, public std::enable_shared_from_this<Connection> {
 public:
  using Socket = ByteStream::Socket;

  // tls: null for a connection that is not encrypted. active: counts the connections that have a request.
  Connection(Socket socket, const TlsContext* tls, std::string client, const HttpOptions& options, HttpHandler& handler,
             std::atomic<size_t>& active);
  ~Connection();  // of a request as well that had no memory to continue

  // Serves the connection until it ends. Everything below is called on the I/O thread, except send.
  boost::asio::awaitable<void> serve();
  void close() { stream_->close(); }
  const std::string& client() const { return client_; }  // its address
  // Ends the connection after the answer that is being made; at once if there is none.
  void drain();

  void send(std::string bytes, bool last, bool broken) override;

 private:
  boost::asio::awaitable<bool> serve_one();  // returns whether another one may follow
  boost::asio::awaitable<bool> refuse_one(RequestReader& reader, const HttpError& error, std::shared_ptr<void> hold);
  boost::asio::awaitable<bool> fill(RequestReader& reader, bool head_only);  // returns false if the client left
  boost::asio::awaitable<bool> answer_one(RequestReader& reader, Grant grant);
  boost::asio::awaitable<bool> write_answer(Exchange& exchange);
  void take(std::string bytes, bool last, bool broken);  // of the answer
  void end_exchange(bool client_left);
  ReplyFraming framing(const RequestHead* head) const;

  const std::shared_ptr<ByteStream> stream_;
  const std::string client_;
  const HttpOptions& options_;
  HttpHandler& handler_;
  std::atomic<size_t>& active_;
  std::shared_ptr<Exchange> exchange_;      // that the handler answers
  std::string answer_;                      // bytes to write
  bool answered_ = false, broken_ = false;  // the last bytes of the answer are in answer_; the answer is incomplete
  bool draining_ = false, idle_ = true;
  std::atomic<bool> lost_ = false;  // bytes of the answer, for want of memory
};

}  // namespace qkv
