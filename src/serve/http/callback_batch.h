// Functions that a thread leaves for another one, which calls them together.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "serve/http/out_of_memory.h"

namespace qkv {

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

}  // namespace qkv
