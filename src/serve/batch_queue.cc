#include "serve/batch_queue.h"

#include <utility>

namespace qkv {
namespace {

std::exception_ptr error_of_computing(BatchJob& first, std::span<BatchJob* const> all) {
  try {
    first.compute(all);
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

std::vector<std::shared_ptr<BatchJob>> BatchQueue::take() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<BatchJob>> jobs;
  int64_t cost = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && jobs.size() < kJobs;) {
    if (!jobs.empty() && (cost + next->job->cost > kCost || !next->job->joins(*jobs.front()))) {
      next++;
      continue;
    }
    turns_.start(next->turn);
    cost += next->job->cost;
    jobs.push_back(std::move(next->job));
    next = waiting_.erase(next);
  }
  return jobs;
}

bool BatchQueue::step() {
  const std::vector<std::shared_ptr<BatchJob>> jobs = take();
  if (jobs.empty()) return false;
  std::vector<BatchJob*> all;
  for (const auto& job : jobs) {
    job->on_start();
    all.push_back(job.get());
  }
  const std::exception_ptr error = error_of_computing(*all.front(), all);
  for (BatchJob* job : all) job->on_done(error && all.size() > 1 ? error_of_computing(*job, {&job, 1}) : error);
  return true;
}

}  // namespace qkv
