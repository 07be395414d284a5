#include "recommend_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "json_line.h"

namespace {

using nlohmann::ordered_json;

constexpr size_t kEvents = 3;  // in the text of an explanation

// Returns the title or, if there is none, the id.
std::string shown(const std::string& item, const qkv::Titles& titles) {
  const std::string& title = titles.title(item);
  return title.empty() ? item : title;
}

// Returns the events with the largest absolute effects.
std::string explanation(const qkv::Recommendation& item, const std::vector<std::string>& read,
                        const qkv::Titles& titles) {
  std::vector<size_t> order(item.effects.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t event) { return std::abs(item.effects[event]); });
  order.resize(std::min(order.size(), kEvents));
  std::string text;
  for (const size_t event : order)
    text += fmt::format("{}{} {:+.3f}", text.empty() ? "" : ", ", shown(read[event], titles), item.effects[event]);
  return text;
}

}  // namespace

std::string json_line(const RecommendLine& request, const qkv::Recommendations& answer, const qkv::Titles& titles) {
  ordered_json json = ordered_json::object();
  if (!request.id.is_null()) json["id"] = request.id;
  if (!request.user.is_null()) json["user"] = request.user;
  if (request.similar) json["similar"] = *request.similar;
  json["items"] = ordered_json::array();
  for (size_t i = 0; i < answer.items.size(); i++) {
    const qkv::Recommendation& item = answer.items[i];
    ordered_json entry = {{"rank", i + 1}, {"item", item.item}};
    if (const std::string& title = titles.title(item.item); !title.empty()) entry["title"] = title;
    entry["score"] = item.score;
    if (request.options->explain) entry["effects"] = item.effects;
    json["items"].push_back(std::move(entry));
  }
  if (!request.similar) {
    json["popular"] = answer.popular;
    json["read"] = answer.read;
    json["unknown"] = answer.unknown;
  }
  if (!answer.unknown_listed.empty()) json["unknown_listed"] = answer.unknown_listed;
  for (const auto& [text, items] : request.ambiguous) json["ambiguous"][text] = items;
  return json_text(json) + "\n";
}

std::string json_error(const ordered_json& id, const std::string& message) {
  ordered_json json = ordered_json::object();
  if (!id.is_null()) json["id"] = id;
  json["error"] = message;
  return json_text(json) + "\n";
}

std::string text_lines(const qkv::Recommendations& answer, const qkv::Titles& titles) {
  std::string lines;
  for (size_t i = 0; i < answer.items.size(); i++) {
    const qkv::Recommendation& item = answer.items[i];
    const std::string score = fmt::format("{:.{}f}", item.score, answer.popular ? 0 : 3);
    lines += fmt::format("{:3} {:>8}  {}\n", i + 1, score, shown(item.item, titles));
    if (!item.effects.empty()) lines += fmt::format("{:14}{}\n", "", explanation(item, answer.read, titles));
  }
  return lines;
}

std::vector<std::string> notes(const RecommendLine& request, const qkv::Recommendations& answer,
                               const qkv::Titles& titles) {
  std::vector<std::string> lines;
  for (const auto& [text, items] : request.ambiguous) {
    std::string all;
    for (const std::string& item : items)
      all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", item, shown(item, titles));
    lines.push_back(fmt::format("{} is ambiguous and ignored; use one of the ids: {}", in_quotes(text), all));
  }
  for (const std::string& text : answer.unknown) {
    const std::vector<std::string> near = titles.near(text);
    lines.push_back(fmt::format("{} is unknown to the model and ignored{}{}", in_quotes(shown(text, titles)),
                                near.empty() ? "" : "; similar titles: ", fmt::join(near, ", ")));
  }
  if (answer.items.empty() && !request.options->where.empty()) lines.push_back("no item satisfies the conditions");
  if (answer.popular) lines.push_back("the history has no known item; these are the most popular items");
  return lines;
}
