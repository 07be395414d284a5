// The answers to requests of qkv recommend.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "core/json.h"
#include "program/lines/request_json.h"
#include "qkv/recommend_lines.h"
#include "qkv/text.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownEvents = 3;  // in the text of an explanation

// Returns the title or, if there is none, the id, as part of a line.
std::string shown(const std::string& item, const Titles& titles) {
  const std::string& title = titles.title(item);
  return one_line(title.empty() ? item : title);
}

// Returns the events with the largest absolute effects.
std::string explanation(const Recommendation& item, const std::vector<std::string>& read, const Titles& titles) {
  std::vector<size_t> order(item.effects.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t event) { return std::abs(item.effects[event]); });
  order.resize(std::min(order.size(), kShownEvents));
  std::string text;
  for (const size_t event : order)
    text += fmt::format("{}{} {:+.3f}", text.empty() ? "" : ", ", shown(read[event], titles), item.effects[event]);
  return text;
}

ordered_json items_json(const RecommendLine& line, const Recommendations& answer, const Titles& titles) {
  const bool explain = line.options && line.options->explain;
  ordered_json items = ordered_json::array();
  for (const Recommendation& item : answer.items) {
    ordered_json entry = {{"rank", items.size() + 1}, {"item", item.item}};
    if (const std::string& title = titles.title(item.item); !title.empty()) entry["title"] = title;
    entry["score"] = item.score;
    if (explain) entry["effects"] = item.effects;
    items.push_back(std::move(entry));
  }
  return items;
}

// Adds each text once, without comparing it with all others as ordered_json does.
ordered_json ambiguous_json(const RecommendLine& line) {
  ordered_json texts = ordered_json::object();
  std::set<std::string_view> seen;
  for (const auto& [text, items] : line.ambiguous)
    if (seen.insert(text).second) texts.get_ref<ordered_json::object_t&>().emplace_back(text, items);
  return texts;
}

}  // namespace

std::string recommendations_to_json(const RecommendLine& line, const Recommendations& answer, const Titles& titles) {
  ordered_json json = ordered_json::object();
  if (line.user) json["user"] = *line.user;
  if (line.similar) json["similar"] = *line.similar;
  json["items"] = items_json(line, answer, titles);
  if (!line.similar) {
    json["popular"] = answer.popular;
    json["read"] = answer.read;
    json["unknown"] = answer.unknown;
  }
  if (!answer.unknown_listed.empty()) json["unknown_listed"] = answer.unknown_listed;
  if (!line.ambiguous.empty()) json["ambiguous"] = ambiguous_json(line);
  return json_text_with_id(line.id, json);
}

std::string recommendations_to_text(const Recommendations& answer, const Titles& titles) {
  std::string lines;
  for (size_t i = 0; i < answer.items.size(); i++) {
    const Recommendation& item = answer.items[i];
    const std::string score = fmt::format("{:.{}f}", item.score, answer.popular ? 0 : 3);
    lines += fmt::format("{:3} {:>8}  {}\n", i + 1, score, shown(item.item, titles));
    if (!item.effects.empty()) lines += fmt::format("{:14}{}\n", "", explanation(item, answer.read, titles));
  }
  return lines;
}

std::vector<std::string> recommendation_notes(const RecommendLine& line, const Recommendations& answer,
                                              const Titles& titles) {
  std::vector<std::string> lines;
  for (const auto& [text, items] : line.ambiguous) {
    std::string all;
    for (const std::string& item : items)
      all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", one_line(item), shown(item, titles));
    lines.push_back(fmt::format("{} is ambiguous and ignored; use one of the ids: {}", excerpt(text), all));
  }
  for (const std::string& text : answer.unknown) {
    const std::vector<std::string> near = titles.similar(text);
    lines.push_back(fmt::format("{} is unknown to the model and ignored{}{}", excerpt(shown(text, titles)),
                                near.empty() ? "" : "; similar titles: ", fmt::join(near, ", ")));
  }
  const bool has_conditions = line.options && !line.options->where.empty();
  if (answer.items.empty() && has_conditions) lines.push_back("no item satisfies the conditions");
  if (answer.popular) lines.push_back("the history has no known item; these are the most popular items");
  return lines;
}

}  // namespace qkv
