#include "serve/api/event_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <future>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "data/log/event_time.h"
#include "serve/http/out_of_memory.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr int64_t kStoreSecond = 1'000'000, kLastTime = 253'402'300'800 * kStoreSecond;  // the year 10000
constexpr size_t kLongestRow = 4096;  // bytes; three names and three numbers
constexpr std::array kUnits = {std::pair{"s", int64_t{1}}, std::pair{"ms", int64_t{1000}},
                               std::pair{"us", int64_t{1'000'000}}};
constexpr size_t kUserBytes = 256;  // of a user, beyond name and events: nodes of a list and of a table

std::string header_of(int64_t ticks) {
  const auto unit = std::ranges::find(kUnits, ticks, [](const auto& entry) { return entry.second; });
  return fmt::format("user\titem\ttimestamp:{}\tfeedback\tvalue\tfollowing", unit->first);
}

// Microseconds of a tick.
int64_t tick(int64_t ticks) { return kStoreSecond / ticks; }

// Returns a time as it is in the file. Only seconds have decimals: those of other units would turn the times of a log
// into millionths of that unit.
std::string tick_text(int64_t time, int64_t ticks) {
  std::string text = std::to_string(time / tick(ticks));
  if (ticks != 1 || time % kStoreSecond == 0) return text;
  text += fmt::format(".{:06}", time % kStoreSecond);
  text.resize(text.find_last_not_of('0') + 1);
  return text;
}

void check_text(const char* what, std::string_view text, size_t least) {
  const size_t most = EventStore::kMaxName;
  if (text.size() < least || text.size() > most)
    fail("{} must have {} to {} bytes (has {})", what, least, most, text.size());
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
    fail("{} must have no control characters (is {})", what, excerpt(text));
  if (find_invalid_utf8(text) != text.npos) fail("{} must be UTF-8", what);
}

template <class Number>
Number parse_number(const char* what, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail("{} must be a number (is {})", what, excerpt(text));
  return number;
}

// Returns the memory of an event in a list that may have room for as many more.
size_t bytes_of(const EventStore::Event& event) {
  return 2 * sizeof(event) + (event.item.capacity() > 15 ? event.item.capacity() + 1 : 0);
}

}  // namespace

EventStore::EventStore(const std::string& path, int64_t ticks, size_t memory)
    : most_memory_(memory), ticks_(ticks), file_(path) {
  file_.size() == 0 ? create() : load();
}

void EventStore::create() {
  std::promise<std::string> written;
  file_.append(header_of(ticks_) + "\n", [&](const std::string& error) { written.set_value(error); });
  if (const std::string error = written.get_future().get(); !error.empty())
    fail("{}: cannot be written: {}", file_.path(), error);
}

void EventStore::load() {
  size_t following = 0;            // rows that the request still has
  int64_t request = 0;             // offset of its first row
  std::vector<UserEvent> pending;  // its rows
  file_.recover(kLongestRow, [&](const AppendFile::Line& line) {
    const auto place = [&] { return fmt::format("{}:{}", file_.path(), line.number); };
    if (line.number == 1) {
      const auto unit = std::ranges::find_if(kUnits, [&](const auto& entry) {
        const std::string header = header_of(entry.second);
        return line.complete ? line.text == header : header.starts_with(line.text);
      });
      if (unit == kUnits.end())
        fail("{}: expected the first line {} (found {})", place(), excerpt(header_of(1)), excerpt(line.text));
      ticks_ = unit->second;
      return;
    }
    if (!line.complete) return;
    if (following == 0) request = line.offset;
    const bool begins = following == 0;
    const size_t expected = following - 1;
    try {
      pending.push_back(parse_row(line, following));
      if (!begins && following != expected) fail("following must be {} (is {})", expected, following);
    } catch (const Error& error) {
      fail("{}: {}", place(), error.what());
    }
    if (following > 0) return;
    for (UserEvent& event : pending) add(std::move(event));
    pending.clear();
  });
  if (following > 0) file_.cut(request);
  if (file_.size() == 0) create();
}

void EventStore::check(const UserEvent& event) {
  check_text("the user", event.user, 1);
  check_text("the item", event.item, 1);
  check_text("the feedback type", event.type, 0);
  if (event.time < 0 || event.time >= kLastTime) fail("the time must be from 1970 to 9999");
  if (!std::isfinite(event.value)) fail("the value must be a finite number");
}

std::string EventStore::row(const UserEvent& event, size_t following) const {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", event.user, event.item, tick_text(event.time, ticks_), event.type,
                     event.value, following);
}

UserEvent EventStore::parse_row(const AppendFile::Line& line, size_t& following) const {
  std::vector<std::string_view> fields;
  for (size_t begin = 0; begin <= line.text.size();) {
    const size_t end = std::min(line.text.find('\t', begin), line.text.size());
    fields.push_back(line.text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() != 6) fail("expected 6 columns (found {})", fields.size());
  const auto time = parse_event_time(fields[2]);
  if (!time || time->date || time->whole < 0 || time->whole >= kLastTime / tick(ticks_))
    fail("the time must be a number from 1970 to 9999 (is {})", excerpt(fields[2]));
  UserEvent event{std::string(fields[0]), std::string(fields[1]),
                  time->whole * tick(ticks_) + time->millionths / ticks_, std::string(fields[3]),
                  parse_number<double>("the value", fields[4])};
  check(event);
  following = parse_number<size_t>("following", fields[5]);
  if (following >= kMaxRows) fail("following must be less than {} (is {})", kMaxRows, following);
  return event;
}

bool EventStore::append(std::vector<UserEvent> events, AppendFile::Done done) {
  std::string rows;
  for (size_t i = 0; i < events.size(); i++) {
    events[i].time -= events[i].time % (ticks_ == 1 ? 1 : tick(ticks_));  // as it is read again
    rows += row(events[i], events.size() - 1 - i);
  }
  return file_.append(std::move(rows), [this, events = std::move(events), done = std::move(done)](std::string error) {
    // Events that have no memory are in the file, and count after the next start.
    if (error.empty())
      for (const UserEvent& event : events) run_unless_out_of_memory([&] { add(event); });
    if (done) done(std::move(error));
  });
}

void EventStore::add(UserEvent event) {
  const std::lock_guard lock(mutex_);
  const Users::iterator user = find_or_add(event.user);
  std::vector<Event>& events = user->events;
  const auto first = std::lower_bound(events.begin(), events.end(), event.time,
                                      [](const Event& a, int64_t time) { return a.time < time; });
  const auto last = std::find_if(first, events.end(), [&](const Event& a) { return a.time != event.time; });
  if (std::none_of(first, last, [&](const Event& a) { return a.item == event.item; })) {
    const auto added = events.insert(last, {std::move(event.item), event.time});
    user->bytes += bytes_of(*added);
    memory_ += bytes_of(*added);
    if (events.size() > kMaxEvents) {
      user->bytes -= bytes_of(events.front());
      memory_ -= bytes_of(events.front());
      events.erase(events.begin());
    }
  }
  while (memory_ > most_memory_ && users_.size() > 1) forget(users_.begin());
}

EventStore::Users::iterator EventStore::find_or_add(const std::string& name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) {
    users_.splice(users_.end(), users_, found->second);
    return found->second;
  }
  users_.push_back({name, {}, kUserBytes + name.size()});
  const auto user = std::prev(users_.end());
  by_name_.emplace(user->name, user);
  memory_ += user->bytes;
  return user;
}

void EventStore::forget(Users::iterator user) {
  memory_ -= user->bytes;
  by_name_.erase(user->name);
  users_.erase(user);
}

std::vector<EventStore::Event> EventStore::history(std::string_view user) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(user);
  return found == by_name_.end() ? std::vector<Event>() : found->second->events;
}

size_t EventStore::users() const {
  const std::lock_guard lock(mutex_);
  return users_.size();
}

size_t EventStore::memory() const {
  const std::lock_guard lock(mutex_);
  return memory_;
}

}  // namespace qkv
