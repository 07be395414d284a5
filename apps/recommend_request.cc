#include "recommend_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "qkv/error.h"

namespace {

using nlohmann::ordered_json;

constexpr int kDepth = 4;  // nesting of arrays and objects

[[noreturn]] void refuse(const std::string& name, const ordered_json& found, const char* accepted) {
  std::string text = found.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "…";
  throw qkv::Error(fmt::format("\"{}\" must be {} (is {})", name, accepted, text));
}

ordered_json parse(const std::string& line) {
  try {
    return ordered_json::parse(line, [](int depth, ordered_json::parse_event_t, ordered_json&) {
      if (depth > kDepth) throw qkv::Error(fmt::format("JSON is nested more than {} levels deep", kDepth));
      return true;
    });
  } catch (const ordered_json::exception&) {
    throw qkv::Error("not valid JSON");
  }
}

// Returns a name, which may be written as an integer.
std::string name_of(const std::string& field, const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_integer()) refuse(field, value, "a string or an integer");
  return value.dump();
}

std::vector<std::string> names_of(const std::string& field, const ordered_json& value) {
  if (!value.is_array()) refuse(field, value, "a list of names");
  std::vector<std::string> names;
  for (const ordered_json& entry : value) names.push_back(name_of(field, entry));
  return names;
}

std::vector<int64_t> times_of(const std::string& field, const ordered_json& value) {
  if (!value.is_array()) refuse(field, value, "a list of integers or null");
  std::vector<int64_t> times;
  for (const ordered_json& entry : value) {
    const bool fits = entry.is_number_integer() && (!entry.is_number_unsigned() || entry.get<uint64_t>() <= INT64_MAX);
    if (!fits && !entry.is_null()) refuse(field, entry, "a list of integers or null");
    times.push_back(entry.is_null() ? qkv::kNoTime : entry.get<int64_t>());
  }
  return times;
}

bool flag_of(const std::string& field, const ordered_json& value) {
  if (!value.is_boolean()) refuse(field, value, "true or false");
  return value.get<bool>();
}

}  // namespace

void add_user(RecommendRequest& request, const std::string& user, const qkv::Recommender& recommender) {
  request.user = user;
  const std::vector<std::string> events = recommender.history(user);
  request.history.insert(request.history.begin(), events.begin(), events.end());
  const std::vector<int64_t> times = recommender.times(user);
  request.times.insert(request.times.begin(), times.begin(), times.end());
}

void add_item(RecommendRequest& request, const std::string& text, const qkv::Titles& titles, int64_t time) {
  std::vector<std::string> found = titles.find(text);
  if (found.size() > 1) {
    request.ambiguous.emplace_back(text, std::move(found));
    return;
  }
  request.history.push_back(found.empty() ? text : found.front());
  request.times.push_back(time);
}

std::vector<std::string> items_of(const std::vector<std::string>& texts, const qkv::Titles& titles) {
  std::vector<std::string> items;
  for (const std::string& text : texts) {
    const std::vector<std::string> found = titles.find(text);
    items.insert(items.end(), found.begin(), found.end());
    if (found.empty()) items.push_back(text);
  }
  return items;
}

RecommendRequest request_of_line(const std::string& line, const std::shared_ptr<const qkv::RecommendOptions>& options,
                                 const qkv::Recommender& recommender, const qkv::Titles& titles, ordered_json& id) {
  const ordered_json json = parse(line);
  if (!json.is_object()) throw qkv::Error("not a JSON object");
  id = json.value("id", ordered_json());
  RecommendRequest request;
  request.id = id;
  std::vector<std::string> texts;
  std::vector<int64_t> times;
  request.options = options;
  std::shared_ptr<qkv::RecommendOptions> own_options;
  const auto own = [&]() -> qkv::RecommendOptions& {
    if (!own_options) request.options = own_options = std::make_shared<qkv::RecommendOptions>(*options);
    return *own_options;
  };
  for (const auto& [name, value] : json.items()) {
    if (name == "history") {
      texts = names_of(name, value);
    } else if (name == "times") {
      times = times_of(name, value);
    } else if (name == "user") {
      request.user = name_of(name, value);
    } else if (name == "top") {
      if (!value.is_number_integer() || value < 1 || value > (1 << 30))
        refuse(name, value, "an integer between 1 and 2^30");
      own().top = value.get<int64_t>();
    } else if (name == "allow") {
      own().allow = items_of(names_of(name, value), titles);
    } else if (name == "deny") {
      own().deny = items_of(names_of(name, value), titles);
    } else if (name == "include_seen") {
      own().exclude_seen = !flag_of(name, value);
    } else if (name == "explain") {
      own().explain = flag_of(name, value);
    } else if (name != "id") {
      throw qkv::Error(fmt::format("unknown member \"{}\"; must be one of {}", name,
                                   "history, times, user, top, allow, deny, include_seen, explain, id"));
    }
  }
  if (!json.contains("history") && !json.contains("user")) throw qkv::Error("must have \"history\" or \"user\"");
  qkv::check_times(times, texts.size());
  for (size_t i = 0; i < texts.size(); i++)
    add_item(request, texts[i], titles, times.empty() ? qkv::kNoTime : times[i]);
  if (!request.user.is_null()) add_user(request, request.user.get<std::string>(), recommender);
  qkv::check_times(request.times, request.history.size());
  return request;
}
