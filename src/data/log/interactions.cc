#include "data/log/interactions.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "core/fail.h"
#include "core/json.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "data/log/event_filter.h"
#include "data/log/event_log.h"

namespace qkv {
namespace {

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
