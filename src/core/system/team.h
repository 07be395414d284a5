// Threads that help another thread with its loops. The loop never waits for a helper that has not begun: next to other
// work on the machine, the thread then does the loop by itself instead of waiting for the scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/function_ref.h"

namespace qkv {

class Team {
 public:
  // The team of the calling thread, which is made at its first use.
  static Team& of_this_thread();

  Team() = default;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Calls work(0) on this thread and work(number) on at most `helpers` others: fewer if they are late, or if the system
  // has no threads to give. work must not throw, and must return only when nothing is left that it can do.
  void run(FunctionRef<void(int number)> work, int helpers);

 private:
  void add_helpers(int helpers);
  void open(FunctionRef<void(int)> work, int helpers);
  void close();

  void help(uint64_t state);
  uint64_t next_round(uint64_t state) const;
  int join(uint64_t state);

  // A call of run is a round. The state has its number in the upper half, and below it whether it is closed and how
  // many helpers have joined.
  static constexpr uint64_t kRound = uint64_t{1} << 32, kClosed = uint64_t{1} << 31;
  static uint64_t round(uint64_t state) { return state / kRound; }
  static uint64_t joined(uint64_t state) { return state % kClosed; }

  std::atomic<uint64_t> state_ = kClosed;
  std::atomic<int> rounds_ = 0;  // helpers that sleep wait for it to change
  std::atomic<bool> ends_ = false;
  // Set before a round opens:
  FunctionRef<void(int)> work_;
  std::atomic<int> places_ = 0;  // for helpers
  std::atomic<int> left_ = 0;    // helpers that have joined and are done

  std::vector<std::thread> helpers_;
};

}  // namespace qkv
