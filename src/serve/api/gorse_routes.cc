// The routes of Gorse: recommendations for users and sessions, and the events that clients report.
#include "serve/api/gorse_routes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/json.h"
#include "data/log/event_time.h"
#include "program/lines/recommend_lines.h"
#include "serve/api/families.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"
#include "serve/engine/served_model.h"

namespace qkv {
namespace {

// ---- Histories of users: the events of a run's log, and those that clients have reported since.

constexpr int64_t kTicks = 1'000'000;  // per second, of times in the store

// Converts microseconds to the unit of a log; kNoTime if the unit is unknown.
int64_t log_time(int64_t time, int64_t ticks) { return ticks == 0 ? kNoTime : time / (kTicks / ticks); }

// Returns the ticks per second of the times in a run's log: 1, 1000 or 1,000,000, by the size of one of them; 0 if it
// has none or they do not look like times since 1970.
int64_t ticks_of_log(const Recommender& recommender) {
  if (recommender.users().empty()) return 0;
  const std::vector<int64_t> times = recommender.times(recommender.users().front());
  if (times.empty() || times.back() < 100'000'000) return 0;  // March 1973, in seconds
  // In each unit the limit is a time after the year 5000, and before 1974 in the next one.
  if (times.back() < 100'000'000'000) return 1;
  if (times.back() < 100'000'000'000'000) return 1000;
  return times.back() < 100'000'000'000'000'000 ? kTicks : 0;
}

// Returns the history of a user in the order of the times, each event once. The user may be in the log, in `events`,
// which may be null, or in neither. In a log whose unit is unknown, reported events come last, with unknown times.
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

// Returns the history that events of one session make, with times in the unit of the run's log. times: microseconds
// since 1970, ascending, or empty if they are unknown.
RecommendLine history_of_session(const std::vector<std::string>& items, const std::vector<int64_t>& times,
                                 const Recommender& recommender) {
  RecommendLine line;
  line.history = items;
  const int64_t ticks = ticks_of_log(recommender);
  for (const int64_t time : times) line.times.push_back(log_time(time, ticks));
  return line;
}

// ---- Requests and answers

constexpr int64_t kMicroseconds = 1'000'000;
constexpr int64_t kMostPerText = 64;  // items of an answer, for each text that a request may have

// The part of the best items that a request asks for.
struct ItemPage {
  int64_t offset = 0, count = 10;
};

// An event of a request. `time` is empty if the client does not say when it was.
struct Feedback {
  UserEvent event;
  std::optional<int64_t> time;
};

ItemPage read_page(const Call& call, const ServerOptions& limits) {
  const int64_t most = limits.max_texts * kMostPerText;
  const auto number = [&](const char* name, int64_t otherwise, int64_t least) {
    const std::string text = call.query(name);
    return text.empty() ? otherwise : query_number(name, text, least, most);
  };
  const ItemPage page{number("offset", 0, 0), number("n", 10, 1)};
  if (page.offset + page.count > most)
    refuse(400, "n + offset must be at most {} (is {})", most, page.offset + page.count);
  return page;
}

// Recommends after a history, and answers with a page of the items: their names, or objects with their scores.
void answer_page(const CallPtr& call, const ModelPtr& model, RecommendLine line, const ItemPage& page, bool scores) {
  const auto options = std::make_shared<RecommendOptions>();
  options->top = page.offset + page.count;
  line.options = options;
  recommend(call, model, {std::move(line)}, [call, page, scores](std::vector<Recommendations>&& answers) {
    const std::vector<Recommendation>& items = answers.front().items;
    std::string list;
    const int64_t end = std::min(std::ssize(items), page.offset + page.count);
    for (int64_t i = page.offset; i < end; i++) {
      const Recommendation& item = items[static_cast<size_t>(i)];
      if (!std::isfinite(item.score)) throw HttpError(500, "the model gives no number");
      if (!list.empty()) list += ',';
      list += scores ? fmt::format(R"({{"Id":{},"Score":{}}})", json_string(item.item), static_cast<float>(item.score))
                     : json_string(item.item);
    }
    call->reply_json("[" + list + "]");
  });
}

void answer_user(const CallPtr& call) {
  const std::vector<std::string>& parts = call->path_parts();
  if (parts.size() > 1 || !call->query("category").empty())
    refuse(400, "categories are not supported: request /api/recommend/USER");
  for (const char* name : {"write-back-type", "write-back-delay"})
    if (!call->query(name).empty()) refuse(400, "{} is not supported", name);
  const ModelPtr model = call->service().recommender(call->query("model"));
  const ItemPage page = read_page(*call, call->service().options());
  answer_page(call, model,
              history_of_user(parts.front(), *model->recommender, call->service().state<GorseState>().events().get()),
              page, call->head().find("x-api-version") == "2");
}

// Returns microseconds since 1970; nothing for an absent time, also as Go writes it.
std::optional<int64_t> read_timestamp(const std::string& text) {
  if (text.empty() || text == "0001-01-01T00:00:00Z") return {};
  const std::optional<EventTime> time = parse_event_time(text);
  if (!time || !time->date || time->whole < 0)
    refuse_field("Timestamp", "must be a date from 1970 on, such as 2024-05-01T10:30:00Z (is {})", excerpt(text));
  return time->whole * kMicroseconds + time->millionths;
}

Feedback read_feedback(const nlohmann::json& value) {
  RequestObject object(value);
  Feedback feedback;
  feedback.event.type = object.text("FeedbackType");
  feedback.event.user = object.text("UserId");
  feedback.event.item = object.text("ItemId");
  feedback.event.value = object.number("Value", 0, Range());
  feedback.time = read_timestamp(object.text("Timestamp"));
  return feedback;
}

// Reads the array of a request. An error names the event, counted from 1.
template <class Use>
void read_feedbacks(const Call& call, Use&& use) {
  const nlohmann::json body = parse_json(call.body(), "body");
  if (!body.is_array()) refuse(400, "body: must be an array of events");
  if (body.size() > EventStore::kMaxRows)
    refuse(400, "body: must have at most {} events (has {})", EventStore::kMaxRows, body.size());
  for (size_t i = 0; i < body.size(); i++) try {
      if (!body[i].is_object()) refuse(400, "must be an object");
      use(read_feedback(body[i]));
    } catch (const Error& error) {
      refuse(400, "event {}: {}", i + 1, error.what());
    }
}

void answer_session(const CallPtr& call) {
  const ModelPtr model = call->service().recommender(call->query("model"));
  const ItemPage page = read_page(*call, call->service().options());
  std::vector<std::pair<int64_t, std::string>> events;
  size_t timed = 0;
  read_feedbacks(*call, [&](Feedback&& feedback) {
    if (feedback.event.item.empty()) refuse_field("ItemId", "must not be empty");
    timed += feedback.time ? 1 : 0;
    events.emplace_back(feedback.time.value_or(0), std::move(feedback.event.item));
  });
  if (timed > 0 && timed < events.size()) refuse(400, "all events must have a Timestamp, or none");
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> items;
  std::vector<int64_t> times;
  for (auto& [time, item] : events) {
    items.push_back(std::move(item));
    if (timed > 0) times.push_back(time);
  }
  answer_page(call, model, history_of_session(items, times, *model->recommender), page, true);
}

int64_t microseconds_now() {
  using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::system_clock;
  return std::max<int64_t>(0, duration_cast<microseconds>(system_clock::now().time_since_epoch()).count());
}

[[noreturn]] void refuse_storage(std::string_view reason) {
  throw HttpError(503, fmt::format("the events cannot be stored: {}", reason), "storage", std::chrono::seconds(1));
}

void answer_feedback(const CallPtr& call) {
  Service& service = call->service();
  const std::shared_ptr<EventStore>& store = service.state<GorseState>().events();
  if (!store) refuse(403, "feedback is disabled on this server");
  std::vector<UserEvent> events;
  const int64_t now = microseconds_now();
  read_feedbacks(*call, [&](Feedback&& feedback) {
    feedback.event.time = feedback.time.value_or(now);
    EventStore::check(feedback.event);
    events.push_back(std::move(feedback.event));
  });
  const auto answer = [count = events.size()](Call& to) {
    to.reply_json(fmt::format(R"({{"RowAffected":{}}})", count));
  };
  if (events.empty()) return answer(*call);
  // The client may have left when the events are on disk; they count all the same.
  const auto done = [weak = std::weak_ptr(call), &service, answer](std::string error) {
    service.post_to(weak, [answer, error = std::move(error)](const CallPtr& waiting) {
      if (!error.empty()) refuse_storage(error);
      answer(*waiting);
    });
  };
  if (!store->append(std::move(events), done)) refuse_storage("too many wait for the disk");
}

}  // namespace

std::function<void()> GorseState::prepare(const std::vector<ModelPtr>& models) {
  if (path_.empty()) return [] {};
  int64_t ticks = 0;
  for (const ModelPtr& model : models)
    if (ticks == 0 && model->recommender) ticks = ticks_of_log(*model->recommender);
  return [this, opened = std::make_shared<EventStore>(path_, std::max<int64_t>(ticks, 1))] { events_ = opened; };
}

std::span<const Route> gorse_routes() {
  static const Route routes[] = {
      {"GET", "/api/recommend/{}", Family::gorse, answer_user},
      {"GET", "/api/recommend/{}/{}", Family::gorse, answer_user},
      {"POST", "/api/session/recommend", Family::gorse, answer_session, BodyType::json, ModelUse::recommend},
      {"POST", "/api/feedback", Family::gorse, answer_feedback, BodyType::json},
      {"PUT", "/api/feedback", Family::gorse, answer_feedback, BodyType::json},
  };
  return routes;
}

}  // namespace qkv
