#include "serve/metrics/request_log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/system/start_thread.h"
#include "core/to_size.h"
#include "serve/http/out_of_memory.h"
#include "serve/metrics/log_line.h"

namespace qkv {
namespace {

constexpr std::chrono::seconds kSecond{1};
constexpr int kPollMilliseconds = 50;   // between looks at whether the log is being destroyed
constexpr size_t kLargestWrite = 4096;  // bytes; a pipe that can be written to takes as many at once

}  // namespace

struct RequestLog::State {
  struct Entry {
    RequestRecord record;
    int64_t dropped = 0;  // above 0: the number of dropped lines to report, instead of the record
  };

  State(LogFormat form, int to, const LogLimits& given, Now clock)
      : format(form), file(to), limits(given), now(std::move(clock)) {}

  void write(RequestRecord record);
  bool put_in(Entry entry);
  void add_note();
  void run();
  bool wait_for_entries(std::deque<Entry>& entries);
  void put_entries(const std::deque<Entry>& entries);
  void put_lines(const std::string& lines, int64_t count);
  bool put(std::string_view bytes);
  bool has_given_up();

  const LogFormat format;
  const int file;
  const LogLimits limits;
  const Now now;

  std::mutex mutex;  // guards what follows
  std::condition_variable changed, ended_changed;
  std::deque<Entry> queue;
  Clock::time_point second = Clock::time_point::min();  // when lines were counted from 0
  int64_t lines = 0;                                    // in this second
  int64_t unreported = 0, dropped = 0;                  // lines that were dropped: since the last note, and in all
  bool stopping = false, ended = false;
  Clock::time_point last_write = {};  // when to give up, while stopping
};

void RequestLog::State::write(RequestRecord record) {
  const std::lock_guard lock(mutex);
  const Clock::time_point time = now();
  if (second == Clock::time_point::min() || time - second >= kSecond) {
    second = time;
    lines = 0;
    add_note();
  }
  if (lines >= limits.lines_per_second || queue.size() >= limits.queue || !put_in({std::move(record)})) {
    unreported++;
    dropped++;
    return;
  }
  lines++;
}

// Returns false if there is no memory for the entry.
bool RequestLog::State::put_in(Entry entry) {
  const bool is_in = run_unless_out_of_memory([&] { queue.push_back(std::move(entry)); });
  changed.notify_one();
  return is_in;
}

void RequestLog::State::add_note() {
  if (unreported > 0 && queue.size() < limits.queue && put_in({{}, unreported})) unreported = 0;
}

void RequestLog::State::run() {
  std::deque<Entry> entries;
  while (wait_for_entries(entries)) {
    const auto taken = std::exchange(entries, {});
    try {
      put_entries(taken);
    } catch (const std::exception&) {  // no memory
    }
  }
  const std::lock_guard lock(mutex);
  ended = true;
  ended_changed.notify_all();
}

// Returns false if the log is being destroyed and everything has been written.
bool RequestLog::State::wait_for_entries(std::deque<Entry>& entries) {
  std::unique_lock lock(mutex);
  while (queue.empty() && !stopping) {
    if (unreported == 0) {
      changed.wait(lock);
    } else {
      changed.wait_for(lock, kSecond);
      if (now() - second >= kSecond) add_note();
    }
  }
  if (stopping) add_note();
  entries.swap(queue);
  return !entries.empty();
}

void RequestLog::State::put_entries(const std::deque<Entry>& entries) {
  std::string together;
  int64_t count = 0;
  for (const Entry& entry : entries) {
    const std::string line = entry.dropped > 0 ? dropped_line(entry.dropped, format) : log_line(entry.record, format);
    if (together.size() + line.size() > kLargestWrite) {
      put_lines(together, std::exchange(count, 0));
      together.clear();
    }
    together += line;
    count += entry.dropped > 0 ? 0 : 1;
  }
  put_lines(together, count);
}

void RequestLog::State::put_lines(const std::string& text, int64_t count) {
  if (put(text)) return;
  const std::lock_guard lock(mutex);
  unreported += count;
  dropped += count;
}

bool RequestLog::State::put(std::string_view bytes) {
  while (!bytes.empty()) {
    if (has_given_up()) return false;
    pollfd poll = {file, POLLOUT, 0};
    if (::poll(&poll, 1, kPollMilliseconds) <= 0) continue;
    const ssize_t count = ::write(file, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (count > 0) bytes.remove_prefix(to_size(count));
  }
  return true;
}

bool RequestLog::State::has_given_up() {
  const std::lock_guard lock(mutex);
  return stopping && Clock::now() > last_write;
}

RequestLog::RequestLog(LogFormat format, int file, const LogLimits& limits, Now now)
    : state_(std::make_shared<State>(format, file, limits, std::move(now))) {
  if (format == LogFormat::none) return;
  start_thread("server", [state = state_] { state->run(); }).detach();
}

RequestLog::~RequestLog() {
  if (state_->format == LogFormat::none) return;
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->last_write = Clock::now() + state_->limits.last_writes;
  state_->changed.notify_one();
  const auto most = state_->limits.last_writes + std::chrono::milliseconds(4 * kPollMilliseconds);
  state_->ended_changed.wait_for(lock, most, [&] { return state_->ended; });
}

void RequestLog::write(RequestRecord record) {
  if (state_->format != LogFormat::none) state_->write(std::move(record));
}

int64_t RequestLog::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

}  // namespace qkv
