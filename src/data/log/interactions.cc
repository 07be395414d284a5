#include "data/log/interactions.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "core/fail.h"
#include "core/json.h"
#include "core/system/threads.h"
#include "data/log/event_log.h"

namespace qkv {
namespace {

// Removal of users and items with too few events.

// The k-core of a log: users and items with too few events are removed together with their events, until none is left.
// Each event is visited at most twice.

constexpr int32_t kNoItem = -1;  // marks an event that is removed

// The numbers of events that users and items still have; −1 for those that are removed.
class Remaining {
 public:
  explicit Remaining(const Interactions& data) : data_(data), users_(data.users.size()), items_(data.items.size()) {
    for (int64_t user = 0; user < data.user_count(); user++)
      for (const int32_t item : data.of(user))
        if (item != kNoItem) of_user(user)++, of_item(item)++;
  }

  int64_t& of_user(int64_t user) { return users_[to_size(user)]; }
  int64_t& of_item(int64_t item) { return items_[to_size(item)]; }
  int64_t events() const {
    int64_t sum = 0;
    for (const int64_t count : users_) sum += std::max<int64_t>(0, count);
    return sum;
  }

  // Removes a user; calls on_loss(item) after each event that an item loses.
  template <class OnLoss>
  void remove_user(int64_t user, OnLoss&& on_loss) {
    of_user(user) = -1;
    for (const int32_t item : data_.of(user))
      if (item != kNoItem && of_item(item) >= 0) of_item(item)--, on_loss(item);
  }

  // Returns whether most users with two events have no third one.
  bool most_have_two() const {
    const auto have = [&](int64_t events) {
      return std::ranges::count_if(users_, [&](int64_t count) { return count >= events; });
    };
    return 2 * have(3) < have(2);
  }

  void remove_core(int64_t user_least, int64_t item_least);

 private:
  const Interactions& data_;
  std::vector<int64_t> users_, items_;
};

// The users of every item, once per event: those of item i are users[offsets[i]] … users[offsets[i + 1] − 1].
struct UsersOfItems {
  std::vector<int64_t> offsets;
  std::vector<int32_t> users;

  explicit UsersOfItems(const Interactions& data) : offsets(data.items.size() + 1), users(data.events.size()) {
    for (const int32_t item : data.events)
      if (item != kNoItem) offsets[to_size(item) + 1]++;
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
    for (int64_t user = 0; user < data.user_count(); user++)
      for (const int32_t item : data.of(user))
        if (item != kNoItem) users[to_size(next[to_size(item)]++)] = static_cast<int32_t>(user);
  }

  std::span<const int32_t> of(int64_t item) const {
    const auto i = to_size(item);
    return std::span(users).subspan(to_size(offsets[i]), to_size(offsets[i + 1] - offsets[i]));
  }
};

void Remaining::remove_core(int64_t user_least, int64_t item_least) {
  const UsersOfItems users_of(data_);
  std::vector<int64_t> users, items;  // with too few events, to be removed
  const auto few_of_user = [&](int64_t user) {
    if (of_user(user) == user_least - 1) users.push_back(user);
  };
  const auto few_of_item = [&](int64_t item) {
    if (of_item(item) == item_least - 1) items.push_back(item);
  };
  for (int64_t user = 0; user < data_.user_count(); user++)
    if (of_user(user) >= 0 && of_user(user) < user_least) users.push_back(user);
  for (int64_t item = 0; item < data_.item_count(); item++)
    if (of_item(item) < item_least) items.push_back(item);
  while (!users.empty() || !items.empty()) {
    if (!users.empty()) {
      const int64_t user = users.back();
      users.pop_back();
      remove_user(user, few_of_item);
      continue;
    }
    const int64_t item = items.back();
    items.pop_back();
    of_item(item) = -1;
    for (const int32_t user : users_of.of(item))
      if (of_user(user) >= 0) of_user(user)--, few_of_user(user);
  }
}

// Keeps only users and items with remaining events, and those events.
void compact(Interactions& data, Remaining& left) {
  std::vector<int32_t> new_id(data.items.size(), kNoItem);
  size_t items = 0, users = 0, events = 0;
  for (size_t item = 0; item < data.items.size(); item++) {
    if (left.of_item(static_cast<int64_t>(item)) <= 0) continue;
    new_id[item] = static_cast<int32_t>(items);
    if (items != item) data.items[items] = std::move(data.items[item]);
    items++;
  }
  int64_t begin = 0;
  for (size_t user = 0; user < data.users.size(); user++) {
    const int64_t end = data.offsets[user + 1];
    if (left.of_user(static_cast<int64_t>(user)) > 0) {
      for (int64_t i = begin; i < end; i++) {
        const int32_t item = data.events[to_size(i)];
        if (item == kNoItem || new_id[to_size(item)] == kNoItem) continue;
        if (!data.times.empty()) data.times[events] = data.times[to_size(i)];
        data.events[events++] = new_id[to_size(item)];
      }
      if (users != user) data.users[users] = std::move(data.users[user]);
      data.offsets[++users] = static_cast<int64_t>(events);
    }
    begin = end;
  }
  data.items.resize(items), data.users.resize(users), data.offsets.resize(users + 1), data.events.resize(events);
  if (!data.times.empty()) data.times.resize(events);
}

// Removes the events marked kNoItem (duplicates), then users with fewer than min_events events: options.min_events,
// or 2 if options.keep_two_events applies. Then removes, until nothing changes, users and items with fewer than
// options.core events, users with fewer than min_events events and items without events. Renumbers ids in the same
// order. Adds the counts to the report.
void filter_interactions(Interactions& data, const InteractionOptions& options, ReadReport& report) {
  Remaining left(data);
  const int64_t all = left.events();
  report.duplicates = std::ssize(data.events) - all;
  report.min_events = options.keep_two_events && left.most_have_two() ? 2 : options.min_events;
  for (int64_t user = 0; user < data.user_count(); user++)
    if (left.of_user(user) < report.min_events) {
      left.remove_user(user, [](int64_t) {});
      report.short_users++;
    }
  report.short_events = all - left.events();
  const int64_t items = data.item_count();
  if (options.core > 1) {
    const auto users_left = [&] {
      int64_t count = 0;
      for (int64_t user = 0; user < data.user_count(); user++) count += left.of_user(user) > 0;
      return count;
    };
    const int64_t users = users_left(), events = left.events();
    left.remove_core(std::max(options.core, report.min_events), options.core);
    report.core_users = users - users_left(), report.core_events = events - left.events();
  }
  compact(data, left);
  report.lost_items = items - data.item_count();
}

// Groups the events by user, in the order of the log.
Interactions by_user(EventLog& log) {
  Interactions data;
  data.users = log.users.take(), data.items = log.items.take();
  const std::vector<int64_t> times = log.times.take();
  std::vector<int64_t>& offsets = data.offsets;
  offsets.assign(data.users.size() + 1, 0);
  for (const int32_t user : log.event_users) offsets[to_size(user) + 1]++;
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  data.events.resize(log.event_items.size());
  data.times.resize(times.size());
  for (size_t i = 0; i < log.event_items.size(); i++) {
    const auto place = to_size(next[to_size(log.event_users[i])]++);
    data.events[place] = log.event_items[i];
    if (!times.empty()) data.times[place] = times[i];
  }
  return data;
}

struct Event {
  int64_t time, order;  // order: index in the log
  int32_t item;
};

// Sorts one user's events by time; events of the same time stay in the order of the log. Removes duplicates.
void sort_events(std::vector<Event>& events) {
  std::ranges::sort(events, {}, [](const Event& e) { return std::tuple(e.time, e.item, e.order); });
  const auto same = [](const Event& a, const Event& b) { return a.time == b.time && a.item == b.item; };
  events.erase(std::unique(events.begin(), events.end(), same), events.end());
  std::ranges::sort(events, {}, [](const Event& e) { return std::pair(e.time, e.order); });
}

// Sorts every user's events by time. Removed duplicates leave kNoItem at the end of the user's range.
void sort_by_time(Interactions& data) {
  parallel_blocks(data.user_count(), 256, [&](int64_t first, int64_t last) {
    std::vector<Event> events;
    for (int64_t user = first; user < last; user++) {
      const int64_t begin = data.offsets[to_size(user)], end = data.offsets[to_size(user) + 1];
      const std::span items = std::span(data.events).subspan(to_size(begin), to_size(end - begin));
      const std::span times = std::span(data.times).subspan(to_size(begin), items.size());
      if (std::ranges::adjacent_find(times, std::greater_equal()) == times.end())
        continue;  // already strictly increasing
      events.clear();
      for (size_t i = 0; i < items.size(); i++) events.push_back({times[i], static_cast<int64_t>(i), items[i]});
      sort_events(events);
      std::ranges::fill(items, kNoItem);
      for (size_t i = 0; i < events.size(); i++) items[i] = events[i].item, times[i] = events[i].time;
    }
  });
}

void find_busiest(const Interactions& data, ReadReport& report) {
  for (int64_t user = 0; user < data.user_count(); user++)
    if (const int64_t events = std::ssize(data.of(user)); events > report.busiest_events)
      report.busiest_events = events, report.busiest = data.users[to_size(user)];
}

int64_t count_ties(const Interactions& data) {
  int64_t ties = 0;
  for (int64_t user = 0; user < data.user_count(); user++) {
    const std::span<const int64_t> times = data.times_of(user);
    for (size_t i = 1; i < times.size(); i++) ties += times[i] == times[i - 1];
  }
  return ties;
}

}  // namespace

Interactions read_interactions(const std::vector<std::string>& paths, const InteractionOptions& options,
                               ReadReport& report) {
  if (paths.empty()) fail("interactions: no files given");
  report = {};
  Interactions data;
  {
    EventLog log(options, report);
    for (const std::string& path : paths) log.add_file(path);
    report.sha256 = log.sha256();
    report.time_doubt = log.time_doubt();
    data = by_user(log);
  }
  if (report.has_times) sort_by_time(data);
  filter_interactions(data, options, report);
  if (report.events_read == 0) fail("{}: contains no events", paths[0]);
  if (data.events.empty())
    fail("{}: no events remain of {}{}: min_events is {}{}; the log was read as {}", paths[0], report.events_read,
         report.incomplete > 0 ? fmt::format(" ({} without user, item or time)", report.incomplete) : "",
         report.min_events, options.core > 0 ? fmt::format(", core is {}", options.core) : "",
         report.files[0].substr(paths[0].size() + 2));
  report.users = data.user_count(), report.items = data.item_count(), report.events = std::ssize(data.events);
  report.ties = count_ties(data);
  find_busiest(data, report);
  return data;
}

std::vector<std::string> ReadReport::lines() const {
  std::vector<std::string> lines = files;
  const auto add = [&]<class... Args>(int64_t count, fmt::format_string<Args...> format, Args&&... args) {
    if (count > 0) lines.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  lines.push_back(fmt::format("{} lines, {} events", lines_read, events_read));
  add(headers, "header lines: {}", headers);
  add(blank_lines, "{} blank lines", blank_lines);
  if (!has_times) lines.push_back("no times: events are in the order of the lines");
  if (!time_doubt.empty()) lines.push_back("warning: " + time_doubt);
  add(bad_lines, "{} bad lines skipped, the first: {}", bad_lines, first_bad_line);
  add(incomplete, "{} events skipped: user, item or time is missing", incomplete);
  add(duplicates, "{} duplicate events skipped: same user, item and time as another", duplicates);
  add(short_users, "{} users with {} events skipped: fewer than min_events", short_users, short_events);
  add(core_events, "{} users and {} events skipped by core", core_users, core_events);
  add(lost_items, "{} items lost with them", lost_items);
  add(ties, "{} events have the same time as the user's previous event: these are in the order of the lines", ties);
  if (2 * busiest_events > events)
    lines.push_back(fmt::format("{} of the events belong to one user, {}", busiest_events, excerpt(busiest)));
  lines.push_back(fmt::format("kept: {} users, {} items, {} events", users, items, events));
  return lines;
}

}  // namespace qkv
