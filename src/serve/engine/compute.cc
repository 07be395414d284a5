#include "serve/engine/compute.h"

#include <algorithm>

#include "core/system/start_thread.h"
#include "core/system/threads.h"
#include "serve/http/out_of_memory.h"

namespace qkv {
namespace {

constexpr std::chrono::seconds kIdle{10};  // after which lanes give memory back

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

}  // namespace qkv
