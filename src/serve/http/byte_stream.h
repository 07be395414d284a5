// The bytes of a connection, in and out: a socket, with TLS or without, and the time that its client has.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "serve/http/http_server.h"
#include "serve/http/tls.h"

namespace qkv {

// Everything is called on the I/O thread.
class ByteStream : public std::enable_shared_from_this<ByteStream> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Time = HttpOptions::Time;
  using Nothing = boost::asio::awaitable<void>;

  // tls: null for a connection that is not encrypted.
  ByteStream(Socket socket, const TlsContext* tls, const HttpOptions& options);

  Socket::executor_type executor() { return socket_.get_executor(); }
  bool is_secure() const { return tls_.has_value(); }
  void close();
  bool is_closed() const { return closed_; }

  // Agrees on TLS. silent: the client has sent nothing, or the server has closed the connection.
  enum class Handshake { done, failed, silent };
  boost::asio::awaitable<Handshake> shake_hands();

  // Reads until the client leaves, all the time, so that its leaving is noticed.
  Nothing read();
  const std::string& arrived() const { return arrived_; }  // bytes that nobody has taken
  void take(size_t bytes);
  bool has_sent();  // bytes have arrived, or wait in the socket
  // Whether no more bytes will arrive.
  bool has_left() const { return left_ || closed_; }

  boost::asio::awaitable<bool> write(std::string bytes);  // returns false if the client left
  // Ends the sending side, and drops what still arrives for a moment.
  Nothing linger();

  // Waits for a change: of what has arrived, of the time, or one that wake reports.
  Nothing wait();
  void wake() { changed_.cancel(); }
  void set_deadline(Time time);
  void clear_deadline();
  bool is_late() const { return late_; }  // the deadline has passed

 private:
  // The end of reading, also for want of memory.
  struct AtEnd {
    ByteStream& stream;
    ~AtEnd() {
      stream.left_ = true;
      stream.wake();
    }
  };

  size_t read_some(char* bytes, size_t most, boost::system::error_code& error);

  Socket socket_;
  std::optional<TlsStream> tls_;
  const HttpOptions& options_;
  boost::asio::steady_timer changed_, room_, deadline_;
  std::string arrived_;
  bool left_ = false, closed_ = false, late_ = false;
  bool ends_when_late_ = false;  // waits for the socket
};

}  // namespace qkv
