#include "serve/api/gorse_history.h"

#include <algorithm>
#include <set>
#include <utility>

#include "serve/engine/served_model.h"

namespace qkv {
namespace {

constexpr int64_t kTicks = 1'000'000;  // per second, of times in the store

// Converts microseconds to the unit of a log; kNoTime if the unit is unknown.
int64_t log_time(int64_t time, int64_t ticks) { return ticks == 0 ? kNoTime : time / (kTicks / ticks); }

}  // namespace

int64_t ticks_of_log(const Recommender& recommender) {
  if (recommender.users().empty()) return 0;
  const std::vector<int64_t> times = recommender.times(recommender.users().front());
  if (times.empty() || times.back() < 100'000'000) return 0;  // March 1973, in seconds
  // In each unit the limit is a time after the year 5000, and before 1974 in the next one.
  if (times.back() < 100'000'000'000) return 1;
  if (times.back() < 100'000'000'000'000) return 1000;
  return times.back() < 100'000'000'000'000'000 ? kTicks : 0;
}

std::function<void()> GorseState::prepare(const std::vector<ModelPtr>& models) {
  if (path_.empty()) return [] {};
  int64_t ticks = 0;
  for (const ModelPtr& model : models)
    if (ticks == 0 && model->recommender) ticks = ticks_of_log(*model->recommender);
  return [this, opened = std::make_shared<EventStore>(path_, std::max<int64_t>(ticks, 1))] { events_ = opened; };
}

RecommendLine history_of_user(const std::string& user, const Recommender& recommender, const EventStore* events) {
  RecommendLine line;
  if (recommender.has_user(user)) add_user(line, user, recommender);
  const std::vector<EventStore::Event> reported = events ? events->history(user) : std::vector<EventStore::Event>();
  if (reported.empty()) return line;
  const int64_t ticks = ticks_of_log(recommender);
  std::vector<std::pair<int64_t, std::string>> all;
  for (size_t i = 0; i < line.history.size(); i++) all.emplace_back(line.times[i], std::move(line.history[i]));
  std::set<std::pair<int64_t, std::string>> logged;  // a run may have been trained on events of the store
  if (ticks > 0) logged.insert(all.begin(), all.end());
  for (const EventStore::Event& event : reported) {
    std::pair entry(log_time(event.time, ticks), event.item);
    if (!logged.contains(entry)) all.push_back(std::move(entry));
  }
  if (ticks > 0) std::ranges::stable_sort(all, {}, &std::pair<int64_t, std::string>::first);
  line.history.clear();
  line.times.clear();
  for (auto& [time, item] : all) {
    line.history.push_back(std::move(item));
    line.times.push_back(time);
  }
  return line;
}

RecommendLine history_of_session(const std::vector<std::string>& items, const std::vector<int64_t>& times,
                                 const Recommender& recommender) {
  RecommendLine line;
  line.history = items;
  const int64_t ticks = ticks_of_log(recommender);
  for (const int64_t time : times) line.times.push_back(log_time(time, ticks));
  return line;
}

}  // namespace qkv
