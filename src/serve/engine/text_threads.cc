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

TextThreads::TextThreads(int threads) {
  try {
    for (int i = 0; i < threads; i++) threads_.push_back(start_thread("server", [this] { run(); }));
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
    insert_by_turn(waiting_, Waiting{std::move(work), turns_.next(client, cost)});
  }
  woken_.notify_one();
}

void TextThreads::run() {
  set_threads(1);
  std::unique_lock lock(mutex_);
  bool is_trimmed = true;
  for (;;) {
    const auto has_work = [&] { return ends_ || !waiting_.empty(); };
    if (is_trimmed) {
      woken_.wait(lock, has_work);
    } else if (!woken_.wait_for(lock, kTrimAfter, has_work)) {
      is_trimmed = true;
      lock.unlock();
      ::malloc_trim(0);  // what long texts took goes back to the system
      lock.lock();
      continue;
    }
    if (ends_) return;
    is_trimmed = false;
    turns_.start(waiting_.front().turn);
    std::list<Waiting> next;
    next.splice(next.end(), waiting_, waiting_.begin());
    lock.unlock();
    next.front().work();
    next.clear();
    lock.lock();
  }
}

}  // namespace qkv
