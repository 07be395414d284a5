// POST /v1/recommend, the JSON lines of `qkv recommend`, and GET /v1/items, which finds items by their titles.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "program/lines/recommend_lines.h"
#include "qkv/result_json.h"
#include "serve/api/native_routes.h"
#include "serve/engine/batch_work.h"
#include "serve/engine/request_limits.h"
#include "serve/engine/request_object.h"

namespace qkv {
namespace {

// The lines of a request: one, or several of which each may be refused by itself.
struct RecommendCall {
  ModelPtr model;
  bool is_list = false;
  std::vector<RecommendLine> lines;
  std::vector<std::string> errors;  // of each line; "" for one that is answered
};

// Returns the items that a request may have as an answer, and the events that explain each.
int64_t most_items(const RecommendLine& line, int64_t longest) {
  const RecommendOptions options = line.options ? *line.options : RecommendOptions();
  return options.top * (options.explain ? 1 + std::min(longest, std::ssize(line.history)) : 1);
}

RecommendLine read_line(const ServedModel& model, const nlohmann::json& object, const ServerOptions& limits,
                        std::string& id) {
  RecommendLine line = read_recommend_request(object, nullptr, *model.recommender, *model.titles, id);
  if (line.options && line.options->top > limits.max_texts * 64)
    refuse_field("top", "must be at most {} (is {})", limits.max_texts * 64, line.options->top);
  return line;
}

std::shared_ptr<RecommendCall> read_recommend_request(Call& call) {
  nlohmann::json body = parse_json(call.body(), "body");
  const auto request = std::make_shared<RecommendCall>();
  request->is_list = body.is_array();
  if (!request->is_list) body = nlohmann::json::array({std::move(body)});
  const ServerOptions& limits = call.service().options();
  int64_t items = 0;
  if (std::ssize(body) > limits.max_texts)
    refuse(400, "body: must have at most {} requests (has {})", limits.max_texts, body.size());
  for (nlohmann::json& object : body) {
    std::string model, id;
    if (object.is_object() && object.contains("model")) {
      model = RequestObject(object).text("model");
      object.erase("model");
    }
    const ModelPtr chosen = call.service().recommender(model);
    if (request->model && chosen != request->model) refuse_field("model", "must be the same in all requests");
    request->model = chosen;
    request->lines.emplace_back();
    request->errors.emplace_back();
    try {
      request->lines.back() = read_line(*chosen, object, limits, id);
      items += most_items(request->lines.back(), chosen->max_length());
    } catch (const Error& error) {
      if (!request->is_list) throw;
      request->errors.back() = error_to_json(error.what(), id);
    }
    Service::check_wanted();
    if (items > kMostItems)
      refuse_field("top", "must be at most {} items in all requests, with the events that explain them (are {})",
                   kMostItems, items);
  }
  return request;
}

void answer_lines(const CallPtr& call, const RecommendCall& request, const std::vector<Recommendations>& answers) {
  std::vector<std::string> objects;
  auto next = answers.begin();
  for (size_t i = 0; i < request.lines.size(); i++)
    objects.push_back(request.errors[i].empty()
                          ? recommendations_to_json(request.lines[i], *next++, *request.model->titles)
                          : request.errors[i]);
  call->reply_json(request.is_list ? list_of(objects) : objects.front());
}

}  // namespace

void answer_recommend(const CallPtr& call) {
  const auto request = read_recommend_request(*call);
  std::vector<RecommendLine> lines;
  for (size_t i = 0; i < request->lines.size(); i++)
    if (request->errors[i].empty()) lines.push_back(request->lines[i]);
  if (lines.empty()) return answer_lines(call, *request, {});
  recommend(call, request->model, std::move(lines),
            [call, request](std::vector<Recommendations>&& answers) { answer_lines(call, *request, answers); });
}

void answer_items(const CallPtr& call) {
  const ModelPtr model = call->service().recommender(call->query("model"));
  const std::string text = call->query("q"), count = call->query("n");
  const int64_t most = count.empty() ? 10 : query_number("n", count, 1, 1000);
  check_texts(call->service().options(), "q", {text});
  const auto found = [model, text, most] {
    std::vector<std::string> objects;
    for (const std::string& item : model->titles->suggest(text, most, model->recommender->items()))
      objects.push_back(
          fmt::format(R"({{"item":{},"title":{}}})", json_string(item), json_string(model->titles->title(item))));
    return fmt::format(R"({{"items":{}}})", list_of(objects));
  };
  compute(call, model, {{1, found}}, [call](std::string&& json) { call->reply_json(std::move(json)); });
  call->track().add_texts(1);
}

}  // namespace qkv
