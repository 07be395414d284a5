// Functions and bytes that a thread leaves for another one, which gets all of them at once.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "serve/http/out_of_memory.h"

namespace qkv {

// Functions that another thread calls together.
class CallbackBatch {
 public:
  // lost: there was no memory to call it on the other thread, so it is called on this one.
  using Function = std::function<void(bool lost)>;

  void add(Function function) {
    if (!functions_) functions_ = std::make_shared<std::vector<Function>>();
    functions_->push_back(std::move(function));
  }

  // Calls post(f), where f() calls what has been added since the last time. Does nothing if that is nothing.
  template <class Post>
  void send(Post&& post) {
    const auto functions = std::exchange(functions_, nullptr);
    if (!functions) return;
    const auto call_all = [functions](bool lost) {
      for (const Function& function : *functions) function(lost);
    };
    if (!run_unless_out_of_memory([&] { post([call_all] { call_all(false); }); })) call_all(true);
  }

 private:
  std::shared_ptr<std::vector<Function>> functions_;
};

// Bytes that one thread sends to several connections at the same time, such as an event of every stream after a step of
// a model. The I/O thread gets all of them at once, so that it wakes once. Collects what its thread posts from its
// construction on. One at a time per thread.
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
