// Threads that each take a job from one queue, with an arena of their own.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/arena.h"

namespace qkv {

// What a job throws comes out of wait(). With one arena there is no thread: jobs run in the thread that calls wait().
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

  // Waits up to a tenth of a second for the end of a job; true if one has ended since the last time. Throws the first
  // that jobs have thrown since then; they count as ended, and the others go on.
  bool wait();

 private:
  void run(Arena& arena, int threads);
  void work(Arena& arena, std::unique_lock<std::mutex>& lock);

  const std::vector<Arena*> arenas_;
  mutable std::mutex mutex_;
  std::condition_variable submitted_, ended_;
  std::deque<Job> jobs_;
  size_t open_ = 0, finished_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qkv
