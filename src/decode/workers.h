// Worker threads with one job queue. Each thread has its own arena.
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

// Returns the number of workers for an option: 0 chooses one per thread, at most 16.
size_t worker_count(int64_t workers);

// A pool of at most one thread per arena. They share the threads of the thread that creates the pool: a job gets an
// equal part for each job that runs or waits. As long as there is a single arena, or only one job at a time, there is
// no thread: jobs run on the thread that calls wait, which also throws the exceptions of jobs.
class Workers {
 public:
  using Job = std::function<void(Arena&)>;

  explicit Workers(const std::vector<Arena*>& arenas);
  ~Workers();  // waits for running jobs and drops the others
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void submit(Job job);
  size_t waiting() const;  // returns the number of jobs that have not begun
  size_t open() const;     // returns the number of jobs whose end wait has not reported

  // Waits up to 0.1 seconds for a job to end. Returns whether one has ended since the last call. Throws the first
  // exception of a job since the last call; failed jobs count as ended, and the others continue.
  bool wait();

 private:
  bool start_thread();
  void run_jobs(Arena& arena);
  int share() const;
  void run_first_job(Arena& arena, std::unique_lock<std::mutex>& lock);

  const std::vector<Arena*> arenas_;
  const int all_threads_;
  mutable std::mutex mutex_;
  std::condition_variable submitted_, ended_;
  std::deque<Job> jobs_;
  size_t open_ = 0, finished_ = 0, running_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace qkv
