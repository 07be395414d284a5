// The threads for work that takes time in proportion to a text: reading JSON, converting text to tokens, writing a long
// answer.
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

#include "decode/engine/client_turns.h"

namespace qkv {

// Thread-safe.
class TextThreads {
 public:
  static constexpr int64_t kShort = 16 << 10;  // cost of short work

  // short_threads: further threads that take only short work, so that it waits for none that is long.
  explicit TextThreads(int threads, int short_threads = 0);
  ~TextThreads();  // waits for the work in progress, and drops what waits

  // Runs a function, which must not throw, on one of the threads. Clients take turns, each with work of the same cost.
  void push(const std::string& client, int64_t cost, std::function<void()> work);

 private:
  struct Waiting {
    std::function<void()> work;
    int64_t turn = 0;
  };

  void take(bool short_only, std::list<Waiting>& next);  // the work whose turn it is
  bool has_work(bool short_only) const { return !short_.empty() || (!short_only && !long_.empty()); }
  void run(bool short_only);
  void stop();  // waits for the threads that were started

  std::mutex mutex_;
  std::condition_variable woken_;
  std::list<Waiting> short_, long_;  // in the order of their turns
  ClientTurns turns_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qkv
