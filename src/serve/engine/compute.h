// The threads that compute, each with its own lane of every model, and the requests that a model computes as a whole.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "decode/engine/client_turns.h"

namespace qkv {

// One thread's share of a model.
class Lane {
 public:
  virtual ~Lane() = default;
  // Does a piece of work. Returns false if there is nothing to do until it is woken. Called by one thread.
  virtual bool step() = 0;

  std::atomic<int64_t> load = 0;  // cost of the texts that wait and run here
};

// Divides the threads of the machine among the compute threads that have work. Thread-safe.
class ThreadBudget {
 public:
  explicit ThreadBudget(int threads) : threads_(threads) {}

  void enter() { busy_++; }
  void leave() { busy_--; }
  int of_each() const { return std::max(1, threads_ / std::max(1, busy_.load())); }

 private:
  const int threads_;
  std::atomic<int> busy_ = 0;
};

class ComputeThread {
 public:
  using Clock = std::chrono::steady_clock;

  // share: of the threads that a step uses in parallel. It must outlive this.
  explicit ComputeThread(ThreadBudget& share);
  ~ComputeThread();  // waits for the running step

  // Any thread. Lanes that have work are stepped by the least time that they have taken; one that was idle begins with
  // the least of the others.
  void add(std::shared_ptr<Lane> lane);
  void remove(const Lane& lane);
  void wake(const Lane& lane);

  // Any thread: how long the running step has taken; 0 if none runs. And the time of all steps.
  std::chrono::milliseconds step_time() const;
  double busy_seconds() const;

 private:
  struct Entry {
    std::shared_ptr<Lane> lane;
    bool ready = true;
    Clock::duration used{0};
  };

  void run();
  void set_busy(bool busy);
  Entry* next();
  void step(Entry& entry, std::unique_lock<std::mutex>& lock);

  ThreadBudget& share_;
  bool busy_ = false;  // counted in the share
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::list<Entry> entries_;
  const Lane* stepped_ = nullptr;
  Clock::time_point began_;
  Clock::duration used_{0};
  bool ends_ = false;
  std::thread thread_;
};

// One request. Its members belong to the queue from push until `done` is called.
class BatchJob {
 public:
  virtual ~BatchJob() = default;

  // Whether one call can compute this job and `first`. A job joins at least itself.
  virtual bool joins(const BatchJob& first) const { return &first == this; }
  // Computes `all`, which join this job and include it.
  virtual void compute(std::span<BatchJob* const> all) = 0;

  std::string client;
  int64_t cost = 0;
  // Called on a compute thread, once each, unless the job is cancelled before it starts.
  std::function<void()> on_start;
  std::function<void(std::exception_ptr)> on_done;
};

// Thread-safe.
class BatchQueue {
 public:
  static constexpr int64_t kCost = 4096;  // of jobs that are computed together
  static constexpr size_t kJobs = 64;

  void push(std::shared_ptr<BatchJob> job);
  // Drops a job that has not started.
  void cancel(const BatchJob& job);
  // Computes the next jobs: the clients in turn, and of each the first one and those that join it. Returns false if
  // none waits. An error of jobs that were computed together goes only to those that have it alone.
  bool step();

 private:
  struct Waiting {
    std::shared_ptr<BatchJob> job;
    int64_t turn = 0;
  };

  std::list<Waiting> take();

  std::mutex mutex_;
  std::list<Waiting> waiting_;
  ClientTurns turns_;
};

}  // namespace qkv
