// The routes of Gorse: recommendations for users and sessions, and the events that clients report.
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "data/log/event_time.h"
#include "serve/api/families.h"
#include "serve/api/gorse_history.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"

namespace qkv {
namespace {

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
