#include "serve/http/tls.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <climits>
#include <new>

#include "core/fail.h"
#include "core/system/file_descriptor.h"

namespace qkv {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;

using SystemError = TlsStream::SystemError;

// Ciphers of TLS 1.2: keys that are forgotten after the connection, and authenticated encryption. Those of TLS 1.3 are
// all of this kind.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// A source and sink of OpenSSL that is a socket of Asio. OpenSSL's own would raise SIGPIPE when the client has left.
TlsStream::Socket& socket_of(BIO* bio) { return *static_cast<TlsStream::Socket*>(BIO_get_data(bio)); }

template <class Transfer>
int transfer(BIO* bio, Transfer&& function, int retry) {
  SystemError error;
  BIO_clear_retry_flags(bio);
  const size_t size = function(error);
  if (error == asio::error::would_block) BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  if (error == asio::error::eof) return 0;
  return error ? -1 : static_cast<int>(size);
}

int write_to_socket(BIO* bio, const char* bytes, int size) {
  const asio::const_buffer buffer(bytes, static_cast<size_t>(size));
  return transfer(
      bio, [&](SystemError& error) { return socket_of(bio).write_some(buffer, error); }, BIO_FLAGS_WRITE);
}

int read_from_socket(BIO* bio, char* bytes, int size) {
  const asio::mutable_buffer buffer(bytes, static_cast<size_t>(size));
  return transfer(
      bio, [&](SystemError& error) { return socket_of(bio).read_some(buffer, error); }, BIO_FLAGS_READ);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* bio_of(TlsStream::Socket& socket) {
  static const auto* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (!made) throw std::bad_alloc();
    BIO_meth_set_write(made, write_to_socket);
    BIO_meth_set_read(made, read_from_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  BIO* bio = BIO_new(method);
  if (!bio) throw std::bad_alloc();
  BIO_set_data(bio, &socket);
  BIO_set_init(bio, 1);
  return bio;
}

constexpr size_t kMostPem = 1 << 20;  // bytes

// Reads a file of an option, which OpenSSL would wait for if it were a named pipe.
std::string pem_of(const std::string& path, const std::string& what) {
  try {
    return read_file(path, kMostPem, Accepts::unnamed_pipe);
  } catch (const Error& error) {
    const std::string reason = error.what();
    fail("{}: {}", what, reason.starts_with(path + ": ") ? reason.substr(path.size() + 2) : reason);
  }
}

// A text that is overwritten when it is no longer needed.
struct PemText {
  std::string text;
  ~PemText() { OPENSSL_cleanse(text.data(), text.size()); }
};

}  // namespace

TlsContext::TlsContext(const std::string& certificate, const std::string& key) : context_(ssl::context::tls_server) {
  SSL_CTX* handle = context_.native_handle();
  SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(handle, kCiphers);
  SSL_CTX_set_options(handle, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);  // clients keep their sessions, as tickets
  SSL_CTX_set_mode(handle,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SystemError error;
  // A key with a password would ask for it in the terminal.
  context_.set_password_callback([](size_t, ssl::context::password_purpose) { return std::string(); });
  const std::string chain = pem_of(certificate, fmt::format("{}: must be a certificate in PEM", certificate));
  context_.use_certificate_chain(asio::buffer(chain), error);
  if (error) fail("{}: must be a certificate in PEM: {}", certificate, error.message());
  const std::string what = fmt::format("{}: must be the key of {} in PEM, without a password", key, certificate);
  const PemText secret{pem_of(key, what)};
  context_.use_private_key(asio::buffer(secret.text), ssl::context::pem, error);
  if (!error && SSL_CTX_check_private_key(handle) != 1)  // OpenSSL keeps a key of another kind for another certificate
    error = SystemError(static_cast<int>(ERR_get_error()), asio::error::get_ssl_category());
  if (error) fail("{}: {}", what, error.message());
}

TlsStream::TlsStream(const TlsContext& context, Socket& socket) : ssl_(SSL_new(context.context_.native_handle())) {
  if (!ssl_) throw std::bad_alloc();
  BIO* bio = bio_of(socket);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

SystemError TlsStream::error_of(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return asio::error::would_block;
  if (error == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  broken_ = true;
  return asio::error::connection_reset;
}

void TlsStream::shake_hands(SystemError& error) {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  error = result == 1 ? SystemError() : error_of(result);
}

size_t TlsStream::read_some(char* bytes, size_t most, SystemError& error) {
  ERR_clear_error();
  const int result = SSL_read(ssl_.get(), bytes, static_cast<int>(std::min<size_t>(most, INT_MAX)));
  error = result > 0 ? SystemError() : error_of(result);
  return static_cast<size_t>(std::max(0, result));
}

size_t TlsStream::write_some(const char* bytes, size_t size, SystemError& error) {
  ERR_clear_error();
  const int result = SSL_write(ssl_.get(), bytes, static_cast<int>(std::min<size_t>(size, INT_MAX)));
  error = result > 0 ? SystemError() : error_of(result);
  return static_cast<size_t>(std::max(0, result));
}

void TlsStream::shut_down() {
  ERR_clear_error();
  if (!broken_) SSL_shutdown(ssl_.get());
}

}  // namespace qkv
