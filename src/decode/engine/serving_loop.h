// The common part of TranslationLoop and GenerationLoop: texts by number, the requests of other threads, and errors.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/fail.h"
#include "qkv/serving.h"

namespace qkv {

// Text: a text and what is known of it, with the members `id` and `events`. add, cancel and pause are thread-safe, and
// take effect at the next step; all else belongs to the thread that calls step.
template <class Text>
class ServingLoop {
 public:
  virtual ~ServingLoop() = default;

  // Returns the number of the text.
  uint64_t add(std::unique_ptr<Text> text) {
    const std::lock_guard lock(mutex_);
    const uint64_t id = text->id = ++count_;
    requests_.push_back({std::move(text), id});
    return id;
  }
  void cancel(uint64_t id) {
    const std::lock_guard lock(mutex_);
    requests_.push_back({nullptr, id, Action::cancel});
  }
  void pause(uint64_t id, bool paused) {
    const std::lock_guard lock(mutex_);
    requests_.push_back({nullptr, id, paused ? Action::pause : Action::resume});
  }

  // Does what other threads have asked for, and a step. Returns false if there was nothing to do. An exception ends all
  // texts, since it leaves the engine in an unknown state.
  bool step() {
    std::vector<Request> requests;
    {
      const std::lock_guard lock(mutex_);
      requests.swap(requests_);
    }
    for (Request& request : requests) apply(request);
    try {
      return advance(Clock::now()) || !requests.empty();
    } catch (...) {
      fail_all(std::current_exception());
      return true;
    }
  }

 protected:
  // Adds a text to the engine, or removes it; drops the engine, which the next call makes again.
  virtual void begin(Text& text) = 0;
  virtual void hold(Text& text, bool paused) = 0;
  virtual void drop(Text& text) = 0;
  virtual void reset() = 0;
  virtual bool advance(Clock::time_point now) = 0;

  // Returns the text with this number; null if it has ended.
  Text* find(uint64_t id) const {
    const auto place = texts_.find(id);
    return place == texts_.end() ? nullptr : place->second.get();
  }

  // Forgets a text. Its events are not called.
  std::unique_ptr<Text> take(Text& text) {
    const auto place = texts_.find(text.id);
    std::unique_ptr<Text> taken = std::move(place->second);
    texts_.erase(place);
    drop(*taken);
    return taken;
  }
  static void fail_with(const std::unique_ptr<Text>& taken, std::exception_ptr error) {
    if (taken->events.on_error) taken->events.on_error(std::move(error));
  }

 private:
  enum class Action { add, cancel, pause, resume };
  struct Request {
    std::unique_ptr<Text> text;
    uint64_t id = 0;
    Action action = Action::add;
  };

  void apply(Request& request) {
    if (request.action == Action::add) return start(std::move(request.text));
    Text* text = find(request.id);
    if (!text) return;
    try {
      if (request.action == Action::cancel)
        take(*text);
      else
        hold(*text, request.action == Action::pause);
    } catch (...) {
      fail_all(std::current_exception());
    }
  }

  void start(std::unique_ptr<Text> text) {
    Text& t = *text;
    try {
      texts_.emplace(t.id, std::move(text));
      begin(t);
    } catch (...) {
      fail_with(text ? std::move(text) : take(t), std::current_exception());
    }
  }

  void fail_all(const std::exception_ptr& error) {
    reset();
    for (auto texts = std::exchange(texts_, {}); auto& [id, text] : texts) fail_with(text, error);
  }

  std::map<uint64_t, std::unique_ptr<Text>> texts_;
  std::mutex mutex_;
  std::vector<Request> requests_;
  uint64_t count_ = 0;
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
