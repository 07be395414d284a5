#include "serve/http/byte_stream.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace qkv {
namespace {

namespace asio = boost::asio;

using SystemError = boost::system::error_code;

constexpr size_t kMostWritten = 256 << 10;  // bytes of one call: other connections are served in between

}  // namespace

// GCC 12 destroys some temporaries of an expression with co_await twice, so such expressions have none.

ByteStream::ByteStream(Socket socket, const TlsContext* tls, const HttpOptions& options)
    : socket_(std::move(socket)),
      options_(options),
      changed_(socket_.get_executor()),
      room_(socket_.get_executor()),
      deadline_(socket_.get_executor()) {
  socket_.non_blocking(true);
  if (tls) tls_.emplace(*tls, socket_);
}

void ByteStream::close() {
  if (closed_) return;
  closed_ = true;
  SystemError ignored;
  socket_.close(ignored);
  for (auto* timer : {&changed_, &room_, &deadline_}) timer->cancel();
}

bool ByteStream::has_sent() {
  SystemError error;
  return !arrived_.empty() || socket_.available(error) > 0;
}

void ByteStream::take(size_t bytes) {
  arrived_.erase(0, bytes);
  room_.cancel();
}

ByteStream::Nothing ByteStream::wait() {
  SystemError woken;
  changed_.expires_at(asio::steady_timer::time_point::max());
  co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void ByteStream::set_deadline(Time time) {
  late_ = false;
  deadline_.expires_after(time);
  deadline_.async_wait([weak = weak_from_this()](const SystemError& error) {
    const auto self = weak.lock();
    if (error || !self || self->deadline_.expiry() > asio::steady_timer::clock_type::now()) return;
    self->late_ = true;
    self->ends_when_late_ ? self->close() : self->wake();
  });
}

void ByteStream::clear_deadline() {
  late_ = false;
  deadline_.expires_at(asio::steady_timer::time_point::max());
}

asio::awaitable<ByteStream::Handshake> ByteStream::shake_hands() {
  if (!tls_) co_return Handshake::done;
  set_deadline(options_.header_timeout);
  ends_when_late_ = true;
  SystemError error = asio::error::would_block;
  while (error == asio::error::would_block && !closed_) {
    tls_->shake_hands(error);
    if (error != asio::error::would_block) break;
    co_await socket_.async_wait(tls_->wanted(), asio::redirect_error(asio::use_awaitable, error));
    if (!error) error = asio::error::would_block;
  }
  const bool failed = error && (late_ || !closed_) && tls_->has_received();
  ends_when_late_ = false;
  clear_deadline();
  if (!error && !closed_) co_return Handshake::done;
  co_return failed ? Handshake::failed : Handshake::silent;
}

size_t ByteStream::read_some(char* bytes, size_t most, SystemError& error) {
  return tls_ ? tls_->read_some(bytes, most, error) : socket_.read_some(asio::buffer(bytes, most), error);
}

ByteStream::Nothing ByteStream::read() {
  const auto self = shared_from_this();
  const AtEnd at_end{*this};
  static std::array<char, 64 << 10> bytes;  // only the I/O thread
  auto ready = Socket::wait_read;
  while (!closed_) {
    SystemError error;
    if (arrived_.size() >= options_.read_ahead) {
      room_.expires_at(asio::steady_timer::time_point::max());
      co_await room_.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    if (!tls_ || !tls_->has_pending())
      co_await socket_.async_wait(ready, asio::redirect_error(asio::use_awaitable, error));
    if (closed_) co_return;
    const size_t most = std::min(options_.read_ahead - arrived_.size(), bytes.size());
    const size_t size = error ? 0 : read_some(bytes.data(), most, error);
    ready = tls_ && error == asio::error::would_block ? tls_->wanted() : Socket::wait_read;
    arrived_.append(bytes.data(), size);
    wake();
    if (error && error != asio::error::would_block) co_return;
  }
}

asio::awaitable<bool> ByteStream::write(std::string bytes) {
  ends_when_late_ = true;
  size_t written = 0;
  SystemError error;
  while (written < bytes.size() && !closed_ && !error) {
    set_deadline(options_.write_timeout);
    if (!tls_) {
      const size_t most = std::min(bytes.size() - written, kMostWritten);
      written += co_await socket_.async_write_some(asio::buffer(bytes.data() + written, most),
                                                   asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    written += tls_->write_some(bytes.data() + written, bytes.size() - written, error);
    if (written < bytes.size() && (!error || error == asio::error::would_block))
      co_await socket_.async_wait(Socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
  }
  ends_when_late_ = false;
  clear_deadline();
  if (error) close();
  co_return !error && !closed_;
}

// A connection that is closed while bytes arrive is reset, and the client may lose the answer. So the sending side is
// closed first, and what still arrives is dropped for a moment.
ByteStream::Nothing ByteStream::linger() {
  SystemError ignored;
  if (tls_) tls_->shut_down();
  socket_.shutdown(Socket::shutdown_send, ignored);
  set_deadline(options_.linger);
  size_t dropped = 0;
  while (!left_ && !late_ && !closed_ && dropped < options_.most_drained) {
    dropped += arrived_.size();
    take(arrived_.size());
    co_await wait();
  }
}

}  // namespace qkv
