#include "serve/engine/compute.h"

#include <algorithm>
#include <vector>

#include "core/system/start_thread.h"
#include "core/system/threads.h"
#include "serve/http/out_of_memory.h"

namespace qkv {
namespace {

constexpr std::chrono::seconds kIdle{10};  // after which lanes give memory back

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

ComputeThread::ComputeThread(ThreadBudget& share) : share_(share), thread_(start_thread("server", [this] { run(); })) {}

ComputeThread::~ComputeThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void ComputeThread::add(std::shared_ptr<Lane> lane) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({std::move(lane)});
  woken_.notify_all();
}

void ComputeThread::remove(const Lane& lane) {
  std::unique_lock lock(mutex_);
  woken_.wait(lock, [&] { return stepped_ != &lane; });
  entries_.remove_if([&](const Entry& entry) { return entry.lane.get() == &lane; });
}

void ComputeThread::wake(const Lane& lane) {
  const std::lock_guard lock(mutex_);
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& e) { return e.lane.get() == &lane; });
  if (entry == entries_.end() || entry->ready) return;
  Clock::duration least = Clock::duration::max();
  for (const Entry& other : entries_)
    if (other.ready) least = std::min(least, other.used);
  if (least != Clock::duration::max()) entry->used = std::max(entry->used, least);
  entry->ready = true;
  woken_.notify_all();
}

std::chrono::milliseconds ComputeThread::step_time() const {
  const std::lock_guard lock(mutex_);
  return stepped_ ? std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_)
                  : std::chrono::milliseconds(0);
}

double ComputeThread::busy_seconds() const {
  const std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(used_).count();
}

ComputeThread::Entry* ComputeThread::next() {
  Entry* least = nullptr;
  for (Entry& entry : entries_)
    if (entry.ready && (!least || entry.used < least->used)) least = &entry;
  return least;
}

void ComputeThread::step(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.ready = false;  // a wake during the step sets it again
  stepped_ = entry.lane.get();
  began_ = Clock::now();
  lock.unlock();
  set_threads(share_.of_each());
  bool any = true;  // also after a step without memory, which is repeated
  run_unless_out_of_memory([&] { any = entry.lane->step(); });
  lock.lock();
  const Clock::duration time = Clock::now() - began_;
  entry.used += time;
  used_ += time;
  entry.ready |= any;
  stepped_ = nullptr;
  woken_.notify_all();
}

void ComputeThread::set_busy(bool busy) {
  if (busy_ == busy) return;
  busy_ = busy;
  busy ? share_.enter() : share_.leave();
}

void ComputeThread::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    Entry* entry = next();
    set_busy(entry != nullptr);
    if (entry) {
      step(*entry, lock);
    } else if (woken_.wait_for(lock, kIdle) == std::cv_status::timeout) {
      for (Entry& idle : entries_) idle.ready = true;
    }
  }
  set_busy(false);
}

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
