// The threads for work that takes time in proportion to a text: reading JSON, counting tokens, writing a long answer.
// The prepare thread hands it over, so that short requests never wait for long ones.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "decode/search/client_turns.h"

namespace qkv {

// Thread-safe.
class TextThreads {
 public:
  explicit TextThreads(int threads);
  ~TextThreads();  // waits for the work in progress, and drops what waits

  // Runs a function, which must not throw, on one of the threads. Clients take turns, each with work of the same cost.
  void push(const std::string& client, int64_t cost, std::function<void()> work);

 private:
  struct Waiting {
    std::function<void()> work;
    int64_t turn = 0;
  };

  void run();
  void stop();  // waits for the threads that were started

  std::mutex mutex_;
  std::condition_variable woken_;
  std::list<Waiting> waiting_;
  ClientTurns turns_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qkv
