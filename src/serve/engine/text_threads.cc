#include "serve/engine/text_threads.h"

#include <malloc.h>

#include <chrono>
#include <utility>

#include "core/system/start_thread.h"
#include "core/system/threads.h"

namespace qkv {
namespace {

constexpr std::chrono::seconds kTrimAfter{5};

}  // namespace

TextThreads::TextThreads(int threads, int short_threads) {
  try {
    for (int i = 0; i < threads + short_threads; i++)
      threads_.push_back(start_thread("server", [this, short_only = i >= threads] { run(short_only); }));
  } catch (...) {
    stop();
    throw;
  }
}

TextThreads::~TextThreads() { stop(); }

void TextThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  woken_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TextThreads::push(const std::string& client, int64_t cost, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    insert_by_turn(cost <= kShort ? short_ : long_, Waiting{std::move(work), turns_.next(client, cost)});
  }
  woken_.notify_all();  // one that takes only short work may be the first
}

void TextThreads::take(bool short_only, std::list<Waiting>& next) {
  const bool is_short = short_only || long_.empty() || (!short_.empty() && short_.front().turn <= long_.front().turn);
  std::list<Waiting>& waiting = is_short ? short_ : long_;
  turns_.start(waiting.front().turn);
  next.splice(next.end(), waiting, waiting.begin());
}

void TextThreads::run(bool short_only) {
  set_threads(1);
  std::unique_lock lock(mutex_);
  bool is_trimmed = true;
  for (;;) {
    const auto is_wanted = [&] { return ends_ || has_work(short_only); };
    if (is_trimmed) {
      woken_.wait(lock, is_wanted);
    } else if (!woken_.wait_for(lock, kTrimAfter, is_wanted)) {
      is_trimmed = true;
      lock.unlock();
      ::malloc_trim(0);  // what long texts took goes back to the system
      lock.lock();
      continue;
    }
    if (ends_) return;
    is_trimmed = false;
    std::list<Waiting> next;
    take(short_only, next);
    lock.unlock();
    next.front().work();
    next.clear();
    lock.lock();
  }
}

}  // namespace qkv
