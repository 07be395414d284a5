// Bytes that one thread sends to several connections at the same time, such as an event of every stream after a step of
// a model. The I/O thread gets all of them at once, so that it wakes once.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "serve/http/callback_batch.h"

namespace qkv {

// Collects what its thread posts from its construction on. One at a time per thread.
class SendBatch {
 public:
  SendBatch() { current_ = this; }
  ~SendBatch() { current_ = nullptr; }
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  // Posts a function to an executor: at once, or together with the others of this thread's batch.
  static void post(const boost::asio::any_io_executor& executor, CallbackBatch::Function function) {
    if (!current_) return boost::asio::post(executor, [function = std::move(function)] { function(false); });
    if (current_->executor_ != executor) current_->send();
    current_->executor_ = executor;
    current_->functions_.add(std::move(function));
  }

  // Posts what has been collected.
  void send() {
    functions_.send([&](auto&& call_all) { boost::asio::post(executor_, call_all); });
  }

 private:
  static inline thread_local SendBatch* current_ = nullptr;
  boost::asio::any_io_executor executor_;  // of the functions
  CallbackBatch functions_;
};

}  // namespace qkv
