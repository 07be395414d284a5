// TLS 1.2 and 1.3 by OpenSSL: the certificate of the server, and connections that are encrypted with it.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

namespace qkv {

// A certificate and its key.
class TlsContext {
 public:
  // Reads PEM files: the certificate, followed by those that lead to its root, and its key. Throws Error, naming the
  // file.
  TlsContext(const std::string& certificate, const std::string& key);

 private:
  friend class TlsStream;
  mutable boost::asio::ssl::context context_;
};

// Encrypts what goes through a socket that does not block. Functions set the error would_block if they have to be
// called again when the socket is ready.
class TlsStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using SystemError = boost::system::error_code;

  // The socket must outlive the stream.
  TlsStream(const TlsContext& context, Socket& socket);

  void shake_hands(SystemError& error);
  // Return the number of bytes, at most 16 KiB.
  size_t read_some(char* bytes, size_t most, SystemError& error);
  size_t write_some(const char* bytes, size_t size, SystemError& error);
  // Ends the sending side.
  void shut_down();

  // Whether the client has sent anything, also bytes that are not TLS.
  bool has_received() const { return BIO_number_read(SSL_get_rbio(ssl_.get())) > 0; }
  // Whether bytes can be read although the socket has none.
  bool has_pending() const { return SSL_pending(ssl_.get()) > 0; }
  // Returns what the socket must be ready for after would_block.
  Socket::wait_type wanted() const { return SSL_want_write(ssl_.get()) ? Socket::wait_write : Socket::wait_read; }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  SystemError error_of(int result);

  std::unique_ptr<SSL, Free> ssl_;
  bool broken_ = false;  // nothing may be sent after an error
};

}  // namespace qkv
