#include "serve/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "serve/send_batch.h"

namespace qkv {
namespace {

namespace asio = boost::asio;

using SystemError = boost::system::error_code;

// The client's id if it is harmless in a header and in a log; otherwise a new one.
std::string request_id(const RequestHead* head) {
  const std::string_view given = head ? head->find("x-request-id") : "";
  const auto is_harmless = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
  };
  if (!given.empty() && given.size() <= 128 && std::ranges::all_of(given, is_harmless)) return std::string(given);
  static std::mt19937_64 random{std::random_device{}()};  // only the I/O thread
  return fmt::format("{:016x}", random());
}

}  // namespace

// GCC 12 destroys some temporaries of an expression with co_await twice, so such expressions have none.

Connection::Connection(Socket socket, const TlsContext* tls, std::string client, const HttpOptions& options,
                       HttpHandler& handler, std::atomic<size_t>& active)
    : socket_(std::move(socket)),
      client_(std::move(client)),
      options_(options),
      handler_(handler),
      active_(active),
      changed_(socket_.get_executor()),
      room_(socket_.get_executor()),
      deadline_(socket_.get_executor()) {
  socket_.non_blocking(true);
  if (tls) tls_.emplace(*tls, socket_);
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  SystemError ignored;
  socket_.close(ignored);
  for (auto* timer : {&changed_, &room_, &deadline_}) timer->cancel();
}

void Connection::drain() {
  draining_ = true;
  SystemError error;
  const bool has_sent = !arrived_.empty() || socket_.available(error) > 0;  // a request that crosses the end
  idle_ && !has_sent ? close() : wake();
}

void Connection::send(std::string bytes, bool last, bool broken) {
  SendBatch::post(socket_.get_executor(), [self = shared_from_this(), bytes = std::move(bytes), last, broken] {
    self->answer_ += bytes;
    self->answered_ |= last;
    self->broken_ |= broken;
    self->wake();
  });
}

Connection::Nothing Connection::wait() {
  SystemError woken;
  changed_.expires_at(asio::steady_timer::time_point::max());
  co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void Connection::set_deadline(Time time) {
  late_ = false;
  deadline_.expires_after(time);
  deadline_.async_wait([weak = weak_from_this()](const SystemError& error) {
    const auto self = weak.lock();
    if (error || !self || self->deadline_.expiry() > asio::steady_timer::clock_type::now()) return;
    self->late_ = true;
    self->ends_when_late_ ? self->close() : self->wake();
  });
}

void Connection::clear_deadline() {
  late_ = false;
  deadline_.expires_at(asio::steady_timer::time_point::max());
}

asio::awaitable<bool> Connection::shake_hands() {
  set_deadline(options_.header_timeout);
  ends_when_late_ = true;
  SystemError error = asio::error::would_block;
  while (error == asio::error::would_block && !closed_) {
    tls_->shake_hands(error);
    if (error != asio::error::would_block) break;
    co_await socket_.async_wait(tls_->wanted(), asio::redirect_error(asio::use_awaitable, error));
    if (!error) error = asio::error::would_block;
  }
  // A server that ends closes the connection; a client that sends nothing may be a probe.
  if (error && (late_ || !closed_) && tls_->has_received()) handler_.handshake_failed(client_);
  ends_when_late_ = false;
  clear_deadline();
  co_return !error && !closed_;
}

size_t Connection::read_some(char* bytes, size_t most, SystemError& error) {
  return tls_ ? tls_->read_some(bytes, most, error) : socket_.read_some(asio::buffer(bytes, most), error);
}

Connection::Nothing Connection::read_bytes() {
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
    left_ = error && error != asio::error::would_block;
    wake();
    if (left_) co_return;
  }
}

Connection::Nothing Connection::serve() {
  const auto self = shared_from_this();
  if (tls_) {
    const bool is_secure = co_await shake_hands();
    if (!is_secure) co_return close();
  }
  asio::co_spawn(
      socket_.get_executor(), [self] { return self->read_bytes(); }, asio::detached);
  bool stays = true;
  while (stays) {
    stays = co_await serve_one();
    if (!std::exchange(idle_, true)) active_--;
  }
  if (!closed_) co_await linger();
  close();
}

asio::awaitable<bool> Connection::fill(RequestReader& reader, bool head_only) {
  while (head_only ? !reader.has_head() : !reader.is_done()) {
    if (!arrived_.empty()) {
      arrived_.erase(0, reader.put(arrived_));
      room_.cancel();
    } else if (late_) {
      refuse(408, "the request took too long to arrive");
    } else if (left_ || closed_) {
      co_return false;
    } else {
      co_await wait();
    }
  }
  co_return true;
}

ReplyFraming Connection::framing(const RequestHead* head) const {
  return {request_id(head), head ? head->minor : 1, head && head->keep_alive && !draining_ && handler_.keeps_alive()};
}

asio::awaitable<bool> Connection::serve_one() {
  idle_ = true;
  SystemError ignored;
  set_deadline(options_.idle_timeout);
  while (arrived_.empty()) {
    if (left_ || closed_ || late_ || (draining_ && socket_.available(ignored) == 0)) co_return false;
    co_await wait();
  }
  idle_ = false;
  active_++;
  set_deadline(options_.header_timeout);

  RequestReader reader(options_.limits);
  std::optional<HttpError> refused;
  Grant grant;
  std::string proceed = "HTTP/1.1 100 Continue\r\n\r\n";
  bool is_complete = false;
  try {
    is_complete = co_await fill(reader, true);
    if (is_complete) {
      handler_.admit(reader.head(), client_, grant);
      reader.read_body(grant.most_body);
      if (reader.head().expects_continue && !reader.is_done() && arrived_.empty())
        is_complete = co_await write(std::move(proceed));
      set_deadline(options_.body_timeout);
      if (is_complete) is_complete = co_await fill(reader, false);
    }
  } catch (const HttpError& error) {
    refused = error;
  }
  bool stays = false;
  if (refused)
    stays = co_await refuse_one(reader, *refused, std::move(grant.hold));
  else if (is_complete)
    stays = co_await answer_one(reader, std::move(grant));
  co_return stays;
}

asio::awaitable<bool> Connection::answer_one(RequestReader& reader, Grant grant) {
  clear_deadline();
  const ReplyFraming how = framing(&reader.head());
  answer_.clear();
  answered_ = broken_ = false;
  const auto exchange = std::make_shared<Exchange>(reader.head(), std::move(reader.body()), client_, how,
                                                   std::move(grant), weak_from_this(), tls_.has_value());
  std::optional<HttpError> refused;
  try {
    handler_.handle(exchange);
  } catch (const HttpError& error) {
    refused = error;
  } catch (const std::exception&) {
    refused = HttpError(500, "internal error");
  }
  if (refused)
    exchange->reply(handler_.refusal({*refused, &exchange->head(), client_, exchange->id(), exchange->hold()}));
  const bool complete = co_await write_answer(*exchange);
  exchange->finish(!complete && !broken_);
  if (!refused) handler_.ended(*exchange);
  co_return complete&& how.keep_alive;
}

asio::awaitable<bool> Connection::write_answer(Exchange& exchange) {
  while (!answered_ || !answer_.empty()) {
    if (closed_ || (answer_.empty() && left_)) co_return false;
    if (answer_.empty()) {
      co_await wait();
      continue;
    }
    std::string bytes;
    bytes.swap(answer_);
    const size_t size = bytes.size();
    const bool written = co_await write(std::move(bytes));
    exchange.take_sent(size);
    if (!written) co_return false;
  }
  co_return !broken_;
}

asio::awaitable<bool> Connection::write(std::string bytes) {
  ends_when_late_ = true;
  size_t written = 0;
  SystemError error;
  while (written < bytes.size() && !closed_ && !error) {
    set_deadline(options_.write_timeout);
    if (!tls_) {
      written += co_await socket_.async_write_some(asio::buffer(bytes.data() + written, bytes.size() - written),
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

// After an answer that comes before the body has been read, a short body is read and dropped, so that the connection
// can stay.
asio::awaitable<bool> Connection::refuse_one(RequestReader& reader, const HttpError& error,
                                             std::shared_ptr<void> hold) {
  const RequestHead* head = reader.has_head() ? &reader.head() : nullptr;
  ReplyFraming how = framing(head);
  const HttpReply reply = handler_.refusal({error, head, client_, how.id, std::move(hold)});
  how.length = reply.body.size();
  how.keep_alive &=
      reader.awaits_body() && !head->expects_continue && head->content_length.value_or(0) <= options_.most_drained;
  std::string text = head_text(reply, how);
  if (!head || head->method != "HEAD") text += reply.body;
  const bool written = co_await write(std::move(text));
  if (!written || !how.keep_alive) co_return false;
  set_deadline(options_.linger);
  bool drained = false;
  try {
    reader.read_body(options_.most_drained);
    drained = co_await fill(reader, false);
  } catch (const HttpError&) {
    drained = false;
  }
  co_return drained;
}

// A connection that is closed while bytes arrive is reset, and the client may lose the answer. So the sending side is
// closed first, and what still arrives is dropped for a moment.
Connection::Nothing Connection::linger() {
  SystemError ignored;
  if (tls_) tls_->shut_down();
  socket_.shutdown(Socket::shutdown_send, ignored);
  set_deadline(options_.linger);
  size_t dropped = 0;
  while (!left_ && !late_ && !closed_ && dropped < options_.most_drained) {
    dropped += arrived_.size();
    arrived_.clear();
    room_.cancel();
    co_await wait();
  }
}

}  // namespace qkv
