#include "serve/http/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "serve/http/out_of_memory.h"
#include "serve/http/send_batch.h"

namespace qkv {
namespace {

namespace asio = boost::asio;

}  // namespace

Connection::Connection(Socket socket, const TlsContext* tls, std::string client, const HttpOptions& options,
                       HttpHandler& handler, std::atomic<size_t>& active)
    : stream_(std::make_shared<ByteStream>(std::move(socket), tls, options)),
      client_(std::move(client)),
      options_(options),
      handler_(handler),
      active_(active) {}

Connection::~Connection() {
  if (!idle_) active_--;
  run_unless_out_of_memory([&] { end_exchange(true); });
}

void Connection::drain() {
  draining_ = true;
  idle_ && !stream_->has_sent() ? close() : stream_->wake();  // a request may cross the end
}

void Connection::send(std::string bytes, bool last, bool broken) {
  const auto sent = std::make_shared<std::string>(std::move(bytes));
  SendBatch::post(stream_->executor(), [self = shared_from_this(), sent, last, broken](bool lost) {
    if (lost)
      self->lost_ = true;
    else if (self->lost_ || !run_unless_out_of_memory([&] { self->take(std::move(*sent), last, broken); }))
      self->close();
  });
}

void Connection::take(std::string bytes, bool last, bool broken) {
  if (answer_.empty())
    answer_ = std::move(bytes);
  else
    answer_ += bytes;
  answered_ |= last;
  broken_ |= broken;
  stream_->wake();
}

asio::awaitable<void> Connection::serve() {
  const auto self = shared_from_this();
  const ByteStream::Handshake handshake = co_await stream_->shake_hands();
  if (handshake == ByteStream::Handshake::failed) handler_.handshake_failed(client_);
  if (handshake != ByteStream::Handshake::done) co_return close();
  asio::co_spawn(stream_->executor(), stream_->read(), asio::detached);
  bool stays = true;
  while (stays) {
    stays = co_await serve_one();
    if (!std::exchange(idle_, true)) active_--;
  }
  if (!stream_->is_closed()) co_await stream_->linger();
  close();
}

}  // namespace qkv
