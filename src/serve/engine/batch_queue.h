// Requests that a model computes as a whole, not step by step: embeddings, recommendations, labels, attention weights.
// Those that wait and are alike are computed together.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "decode/search/client_turns.h"

namespace qkv {

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
