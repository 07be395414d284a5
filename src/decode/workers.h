// Threads that each take a job from one queue, with an arena of their own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/arena.h"

namespace qkv {

// A job must not throw. With one arena there is no thread: jobs run in the thread that asks for a finished one.
class Workers {
 public:
  using Job = std::function<void(Arena&)>;

  explicit Workers(const std::vector<Arena*>& arenas);
  ~Workers();  // jobs that have begun are waited for, others are dropped
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void submit(Job job);
  size_t waiting() const;  // jobs that have not begun
  size_t open() const;     // jobs whose end wait() has not told yet

  // Waits up to a tenth of a second for the end of a job; true if one has ended since the last time.
  bool wait();

 private:
  void run(Arena& arena, int threads);

  const std::vector<Arena*> arenas_;
  mutable std::mutex mutex_;
  std::condition_variable submitted_, ended_;
  std::deque<Job> jobs_;
  size_t open_ = 0, finished_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qkv
