#include "serve/engine/batch_queue.h"

#include <vector>

namespace qkv {
namespace {

template <class Function>
std::exception_ptr error_of(Function&& function) {
  try {
    function();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

void BatchQueue::push(std::shared_ptr<BatchJob> job) {
  const std::lock_guard lock(mutex_);
  const int64_t turn = turns_.next(job->client, job->cost);
  insert_by_turn(waiting_, Waiting{std::move(job), turn});
}

void BatchQueue::cancel(const BatchJob& job) {
  const std::lock_guard lock(mutex_);
  waiting_.remove_if([&](const Waiting& waiting) { return waiting.job.get() == &job; });
}

// Allocates nothing, so that no job is lost.
std::list<BatchQueue::Waiting> BatchQueue::take() {
  const std::lock_guard lock(mutex_);
  std::list<Waiting> jobs;
  int64_t cost = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && jobs.size() < kJobs;) {
    const auto place = next++;
    if (!jobs.empty() && (cost + place->job->cost > kCost || !place->job->joins(*jobs.front().job))) continue;
    turns_.start(place->turn);
    cost += place->job->cost;
    jobs.splice(jobs.end(), waiting_, place);
  }
  return jobs;
}

bool BatchQueue::step() {
  const std::list<Waiting> jobs = take();
  if (jobs.empty()) return false;
  const std::exception_ptr error = error_of([&] {
    std::vector<BatchJob*> all;
    for (const Waiting& waiting : jobs) {
      waiting.job->on_start();
      all.push_back(waiting.job.get());
    }
    all.front()->compute(all);
  });
  for (const Waiting& waiting : jobs) {
    BatchJob* const alone = waiting.job.get();
    alone->on_done(error && jobs.size() > 1 ? error_of([&] { alone->compute({&alone, 1}); }) : error);
  }
  return true;
}

}  // namespace qkv
