#include "decode/workers.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {

size_t worker_count(int64_t workers) {
  constexpr int kMost = 16;  // each takes memory for the keys and values of its batch
  return to_size(workers > 0 ? workers : std::min(threads(), kMost));
}

Workers::Workers(const std::vector<Arena*>& arenas) : arenas_(arenas), all_threads_(threads()) {}

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
    const size_t wanted = open_ > 1 ? std::min(open_, arenas_.size()) : 0;
    while (threads_.size() < wanted && start_thread()) {
    }
  }
  submitted_.notify_one();
}

// If no thread can be started, the others do the work, or the thread that waits.
bool Workers::start_thread() {
  if (arenas_.size() == 1) return false;
  Arena& arena = *arenas_[threads_.size()];
  try {
    threads_.emplace_back([this, &arena] { run_jobs(arena); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

// Returns the number of threads for the first job of the queue.
int Workers::share() const {
  const size_t jobs = std::min(running_ + jobs_.size(), arenas_.size());
  return std::max(1, all_threads_ / static_cast<int>(jobs));
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

void Workers::run_jobs(Arena& arena) {
  std::unique_lock lock(mutex_);
  while (true) {
    submitted_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    set_threads(share());
    running_++;
    run_first_job(arena, lock);
    running_--;
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
