// The inbox of a loop: requests of other threads, kept until the next step.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "qkv/serving.h"

namespace qkv {

// Text: a pointer to a text with a member `id`. Methods are thread-safe.
template <class Text>
class LoopInbox {
 public:
  // Returns the number of the text, which it sets.
  uint64_t add(Text text) {
    const std::lock_guard lock(mutex_);
    const uint64_t id = text->id = ++texts_;
    requests_.push_back({std::move(text), id, false});
    return id;
  }
  void cancel(uint64_t id) {
    const std::lock_guard lock(mutex_);
    requests_.push_back({Text(), id, true});
  }
  void pause(uint64_t id, bool paused) {
    const std::lock_guard lock(mutex_);
    requests_.push_back({Text(), id, false, paused});
  }

  // Calls add(text), cancel(id) or pause(id, paused) for each request, in their order. Returns whether there was one.
  template <class Add, class Cancel, class Pause>
  bool apply(Add&& add, Cancel&& cancel, Pause&& pause) {
    std::vector<Request> requests;
    {
      const std::lock_guard lock(mutex_);
      requests.swap(requests_);
    }
    for (Request& request : requests) {
      if (request.text)
        add(std::move(request.text));
      else if (request.cancel)
        cancel(request.id);
      else
        pause(request.id, request.paused);
    }
    return !requests.empty();
  }

 private:
  struct Request {
    Text text;
    uint64_t id = 0;
    bool cancel = false, paused = false;
  };

  std::mutex mutex_;
  std::vector<Request> requests_;
  uint64_t texts_ = 0;
};

inline void check_limits(const LoopLimits& limits) {
  if (limits.rows < 1) fail("rows must be at least 1 (is {})", limits.rows);
  if (limits.cache_bytes < 1) fail("cache_bytes must be at least 1 (is {})", limits.cache_bytes);
}

// Throws Error if a text can never run.
inline void check_need(int64_t rows, int64_t bytes, const LoopLimits& limits) {
  if (rows > limits.rows) fail("text: needs {} rows, more than the limit of {}", rows, limits.rows);
  if (bytes > limits.cache_bytes)
    fail("text: may need {} bytes of keys and values, more than cache_bytes ({})", bytes, limits.cache_bytes);
}

}  // namespace qkv
