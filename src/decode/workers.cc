#include "decode/workers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/threads.h"

namespace qkv {

Workers::Workers(const std::vector<Arena*>& arenas) : arenas_(arenas) {
  if (arenas_.size() == 1) return;
  const int share = std::max(1, threads() / static_cast<int>(arenas_.size()));
  for (Arena* arena : arenas_) threads_.emplace_back([this, arena, share] { run_jobs(*arena, share); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  submitted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    open_++;
  }
  submitted_.notify_one();
}

size_t Workers::waiting() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

size_t Workers::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

bool Workers::wait() {
  std::unique_lock lock(mutex_);
  if (threads_.empty() && !jobs_.empty()) run_first_job(*arenas_.front(), lock);
  ended_.wait_for(lock, std::chrono::milliseconds(100), [&] { return finished_ > 0; });
  open_ -= finished_;
  const bool ended = std::exchange(finished_, 0) > 0;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return ended;
}

void Workers::run_jobs(Arena& arena, int threads) {
  set_threads(threads);
  std::unique_lock lock(mutex_);
  while (true) {
    submitted_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    run_first_job(arena, lock);
    ended_.notify_one();
  }
}

// Runs the first job of the queue. Releases the lock while the job runs.
void Workers::run_first_job(Arena& arena, std::unique_lock<std::mutex>& lock) {
  const Job job = std::move(jobs_.front());
  jobs_.pop_front();
  lock.unlock();
  std::exception_ptr error;
  try {
    job(arena);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (!error_) error_ = std::move(error);
  finished_++;
}

}  // namespace qkv
