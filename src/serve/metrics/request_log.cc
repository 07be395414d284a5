#include "serve/metrics/request_log.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "core/system/start_thread.h"
#include "core/to_size.h"
#include "serve/http/out_of_memory.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

constexpr size_t kLongestText = 256;  // bytes

// Returns JSON without characters that are not printable ASCII, so that text of a client cannot begin a line or control
// a terminal.
std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[32];
  const std::string begin(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts));
  return fmt::format("{}.{:03}Z", begin, milliseconds % 1000);
}

double milliseconds(double seconds) { return std::round(1e6 * seconds) / 1e3; }

ordered_json fields_of(const RequestRecord& r) {
  ordered_json fields = {{"time", time_text(r.time)}};
  const auto add_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) fields[name] = text.substr(0, kLongestText);
  };
  const auto add_time = [&](const char* name, const std::optional<double>& seconds) {
    if (seconds) fields[name] = milliseconds(*seconds);
  };
  add_text("id", r.id);
  add_text("client", r.client);
  add_text("method", r.method);
  add_text("route", r.route);
  fields["code"] = r.status;
  add_text("model", r.model);
  fields["received_bytes"] = r.received_bytes;
  fields["sent_bytes"] = r.sent_bytes;
  fields["texts"] = r.texts;
  fields["input_tokens"] = r.input_tokens;
  fields["output_tokens"] = r.output_tokens;
  add_time("waiting_ms", r.waiting_seconds);
  add_time("first_token_ms", r.first_seconds);
  add_time("ms", r.seconds);
  add_text("outcome", r.outcome);
  add_text("trace", r.trace);
  add_text("span", r.span);
  return fields;
}

// Returns a text as it is if it is a word, and as JSON otherwise.
std::string word(const ordered_json& value) {
  if (!value.is_string()) return dump(value);
  const std::string& text = value.get_ref<const std::string&>();
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '=' && c != '\\'; };
  return std::all_of(text.begin(), text.end(), is_plain) ? text : dump(value);
}

std::string line_of(const ordered_json& fields, LogFormat format) {
  if (format == LogFormat::none) return "";
  if (format == LogFormat::json) return dump(fields) + "\n";
  std::string line;
  for (const auto& [name, value] : fields.items())
    line += fmt::format("{}{}={}", line.empty() ? "" : " ", name, word(value));
  return line + "\n";
}

constexpr std::chrono::seconds kSecond{1};
constexpr int kPollMilliseconds = 50;   // between looks at whether the log is being destroyed
constexpr size_t kLargestWrite = 4096;  // bytes; a pipe that can be written to takes as many at once

constexpr size_t kTraceDigits = 32, kSpanDigits = 16, kLength = 2 + 1 + kTraceDigits + 1 + kSpanDigits + 1 + 2;

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

}  // namespace

std::string log_line(const RequestRecord& record, LogFormat format) { return line_of(fields_of(record), format); }

std::string dropped_line(int64_t lines, LogFormat format) {
  return line_of({{"time", time_text(std::chrono::system_clock::now())}, {"dropped_lines", lines}}, format);
}

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

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  if (header.size() != kLength || !header.starts_with("00-")) return {};
  const std::string_view trace = header.substr(3, kTraceDigits), parent = header.substr(36, kSpanDigits),
                         flags = header.substr(53);
  if (header[35] != '-' || header[52] != '-') return {};
  if (!is_lower_hex(trace) || !is_lower_hex(parent) || !is_lower_hex(flags) || is_zero(trace) || is_zero(parent))
    return {};
  const int last = flags[1] <= '9' ? flags[1] - '0' : flags[1] - 'a' + 10;
  return TraceContext{std::string(trace), std::string(parent), last % 2 == 1};
}

std::string new_span() {
  thread_local std::mt19937_64 random(std::random_device{}() | uint64_t{std::random_device{}()} << 32);
  uint64_t span = 0;
  while (span == 0) span = random();
  return fmt::format("{:016x}", span);
}

}  // namespace qkv
