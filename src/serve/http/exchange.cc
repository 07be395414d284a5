#include "serve/http/exchange.h"

namespace qkv {
namespace {

constexpr size_t kLong = 64 << 10;  // bytes

}  // namespace

void Exchange::put(std::string bytes, bool last, bool broken) {
  unsent_ += bytes.size();
  sent_ += bytes.size();
  if (const auto connection = connection_.lock()) connection->send(std::move(bytes), last, broken);
}

void Exchange::take_sent(size_t bytes) {
  const size_t left = unsent_ -= bytes;
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    if (left < below_) call = std::exchange(call_below_, nullptr);
  }
  if (call) call();
}

void Exchange::finish(bool client_left) {
  const auto call = std::exchange(call_gone_, nullptr);
  gone_ = client_left;
  if (client_left && call) call();
}

void Exchange::call_when_below(size_t bytes, std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    below_ = bytes;
    call_below_ = std::move(call);
  }
  take_sent(0);  // the bytes may have been sent in the meantime
}

HttpReply Exchange::with_headers(const HttpReply& reply) const {
  HttpReply head{reply.status, reply.type, "", reply.headers};
  head.headers.insert(head.headers.end(), grant_.headers.begin(), grant_.headers.end());
  return head;
}

void Exchange::reply(HttpReply reply) {
  ReplyFraming framing = framing_;
  framing.length = reply.body.size();
  status_ = reply.status;
  std::string head = head_text(with_headers(reply), framing);
  if (!has_body() || reply.body.size() < kLong) return put(has_body() ? head + reply.body : head, true);
  put(std::move(head), false);  // a long body is not copied
  put(std::move(reply.body), true);
}

void Exchange::begin(const HttpReply& head) {
  if (framing_.minor == 0) framing_.keep_alive = false;  // the end of the connection is that of the answer
  status_ = head.status;
  put(head_text(with_headers(head), framing_), false);
}

void Exchange::send(const std::string& bytes) {
  if (!bytes.empty() && has_body()) put(framing_.minor == 1 ? chunk_text(bytes) : bytes, false);
}

void Exchange::end() { put(framing_.minor == 1 && has_body() ? chunk_text("") : "", true, framing_.minor == 0); }

}  // namespace qkv
