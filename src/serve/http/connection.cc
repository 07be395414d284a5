#include "serve/http/connection.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <new>
#include <optional>
#include <random>
#include <utility>

#include "serve/http/callback_batch.h"
#include "serve/http/out_of_memory.h"

namespace qkv {
namespace {

namespace asio = boost::asio;

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

// ---- The course of one request: it arrives, is admitted, and answered or refused.
//
// GCC 12 destroys some temporaries of an expression with co_await twice, so such expressions have none.

ReplyFraming Connection::framing(const RequestHead* head) const {
  return {request_id(head), head ? head->minor : 1, head && head->keep_alive && !draining_ && handler_.keeps_alive()};
}

asio::awaitable<bool> Connection::fill(RequestReader& reader, bool head_only) {
  while (head_only ? !reader.has_head() : !reader.is_done()) {
    if (!stream_->arrived().empty()) {
      stream_->take(reader.put(stream_->arrived()));
    } else if (stream_->is_late()) {
      refuse(408, "the request took too long to arrive");
    } else if (stream_->has_left()) {
      co_return false;
    } else {
      co_await stream_->wait();
    }
  }
  co_return true;
}

asio::awaitable<bool> Connection::serve_one() {
  idle_ = true;
  stream_->set_deadline(options_.idle_timeout);
  while (stream_->arrived().empty()) {
    if (stream_->has_left() || stream_->is_late() || (draining_ && !stream_->has_sent())) co_return false;
    co_await stream_->wait();
  }
  idle_ = false;
  active_++;
  stream_->set_deadline(options_.header_timeout);

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
      if (reader.head().expects_continue && !reader.is_done() && stream_->arrived().empty())
        is_complete = co_await stream_->write(std::move(proceed));
      stream_->set_deadline(options_.body_timeout);
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
  stream_->clear_deadline();
  const ReplyFraming how = framing(&reader.head());
  answer_.clear();
  answered_ = broken_ = false;
  const auto exchange = std::make_shared<Exchange>(reader.head(), std::move(reader.body()), client_, how,
                                                   std::move(grant), weak_from_this(), stream_->is_secure());
  std::optional<HttpError> refused;
  try {
    handler_.handle(exchange);
    exchange_ = exchange;
  } catch (const HttpError& error) {
    refused = error;
  } catch (const std::bad_alloc&) {
    refused = no_memory();
  } catch (const std::exception&) {
    refused = HttpError(500, "internal error");
  }
  if (refused)
    exchange->reply(handler_.refusal({*refused, &exchange->head(), client_, exchange->id(), exchange->hold()}));
  const bool complete = co_await write_answer(*exchange);
  end_exchange(!complete && !broken_);
  co_return complete&& how.keep_alive;
}

// Ends the exchange that the handler answers, if there is one.
void Connection::end_exchange(bool client_left) {
  const auto exchange = std::exchange(exchange_, nullptr);
  if (!exchange) return;
  exchange->finish(client_left);
  handler_.ended(*exchange);
}

asio::awaitable<bool> Connection::write_answer(Exchange& exchange) {
  while (!answered_ || !answer_.empty()) {
    if (stream_->is_closed() || (answer_.empty() && stream_->has_left())) co_return false;
    if (answer_.empty()) {
      if (exchange.is_abandoned() || lost_) co_return false;
      stream_->set_deadline(options_.look);
      co_await stream_->wait();
      continue;
    }
    std::string bytes;
    bytes.swap(answer_);
    const size_t size = bytes.size();
    const bool written = co_await stream_->write(std::move(bytes));
    exchange.take_sent(size);
    if (!written) co_return false;
  }
  co_return !broken_;
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
  const bool written = co_await stream_->write(std::move(text));
  if (!written || !how.keep_alive) co_return false;
  stream_->set_deadline(options_.linger);
  bool drained = false;
  try {
    reader.read_body(options_.most_drained);
    drained = co_await fill(reader, false);
  } catch (const HttpError&) {
    drained = false;
  }
  co_return drained;
}

}  // namespace qkv
