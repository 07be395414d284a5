#include "recommend_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "json_line.h"
#include "qkv/error.h"
#include "qkv/field.h"

namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse(std::string_view name, const ordered_json& found, const std::string& accepted) {
  std::string text = found.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "…";
  throw qkv::Error(fmt::format("\"{}\" must be {} (is {})", name, accepted, text));
}

// Returns a name, which may be written as an integer.
std::string name_of(std::string_view field, const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_integer()) refuse(field, value, "a string or an integer");
  return value.dump();
}

std::vector<std::string> texts_of(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse(field, value, "a list of texts");
  std::vector<std::string> texts;
  for (const ordered_json& entry : value) {
    if (!entry.is_string()) refuse(field, value, "a list of texts");
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

std::vector<std::string> names_of(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse(field, value, "a list of names");
  std::vector<std::string> names;
  for (const ordered_json& entry : value) names.push_back(name_of(field, entry));
  return names;
}

// A list of names and lists of names.
std::vector<std::vector<std::string>> entries_of(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse(field, value, "a list of names");
  std::vector<std::vector<std::string>> entries;
  for (const ordered_json& entry : value)
    entries.push_back(entry.is_array() ? names_of(field, entry) : std::vector{name_of(field, entry)});
  return entries;
}

std::vector<int64_t> times_of(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse(field, value, "a list of times");
  std::vector<int64_t> times;
  for (const ordered_json& entry : value) {
    const bool fits = entry.is_number_integer() && (!entry.is_number_unsigned() || entry.get<uint64_t>() <= INT64_MAX);
    if (!fits && !entry.is_null()) refuse(field, entry, "integers or null");
    times.push_back(entry.is_null() ? qkv::kNoTime : entry.get<int64_t>());
  }
  return times;
}

bool boolean_of(std::string_view field, const ordered_json& value) {
  if (!value.is_boolean()) refuse(field, value, "true or false");
  return value.get<bool>();
}

// Sets the option of a given name from a value of JSON. allow and deny may hold titles.
class OptionSetter {
 public:
  OptionSetter(std::string_view name, const ordered_json& value, const qkv::Titles& titles)
      : name_(name), value_(value), titles_(titles) {}

  void operator()(std::string_view name, int64_t& member, const qkv::Field& field) {
    if (!is_named(name)) return;
    if (!value_.is_number_integer() || !field.range.contains(value_.get<double>()))
      refuse(name, value_, "an integer " + to_string(field.range));
    member = value_.get<int64_t>();
  }
  void operator()(std::string_view name, double& member, const qkv::Field& field) {
    if (!is_named(name)) return;
    if (!value_.is_number() || !field.range.contains(value_.get<double>()))
      refuse(name, value_, "a number " + to_string(field.range));
    member = value_.get<double>();
  }
  void operator()(std::string_view name, bool& member, const qkv::Field&) {
    if (is_named(name)) member = boolean_of(name, value_);
  }
  void operator()(std::string_view name, std::optional<bool>& member, const qkv::Field&) {
    if (is_named(name)) member = boolean_of(name, value_);
  }
  template <class Names>
  void operator()(std::string_view name, Names& member, const qkv::Field&) {
    if (!is_named(name)) return;
    const bool has_items = name == "allow" || name == "deny";
    member = has_items ? items_of(names_of(name, value_), titles_) : texts_of(name, value_);
  }
  bool found() const { return found_; }

 private:
  bool is_named(std::string_view name) {
    found_ |= name == name_;
    return name == name_;
  }

  std::string_view name_;
  const ordered_json& value_;
  const qkv::Titles& titles_;
  bool found_ = false;
};

std::string known_names() {
  std::string names = "history, times, user, similar, include_seen";
  qkv::RecommendOptions options;
  visit_fields(options, [&](std::string_view name, auto&, const qkv::Field&) { names += fmt::format(", {}", name); });
  return names + " or id";
}

}  // namespace

void add_user(RecommendLine& request, const std::string& user, const qkv::Recommender& recommender) {
  request.user = user;
  const std::vector<std::string> events = recommender.history(user);
  request.history.insert(request.history.begin(), events.begin(), events.end());
  const std::vector<int64_t> times = recommender.times(user);
  request.times.insert(request.times.begin(), times.begin(), times.end());
}

void add_item(RecommendLine& request, const std::string& text, const qkv::Titles& titles, int64_t time) {
  std::vector<std::string> found = titles.find(text);
  if (found.size() > 1) {
    request.ambiguous.emplace_back(text, std::move(found));
    return;
  }
  request.history.push_back(found.empty() ? text : found.front());
  request.times.push_back(time);
}

void add_basket(RecommendLine& request, const std::vector<std::string>& texts, const qkv::Recommender& recommender,
                const qkv::Titles& titles, int64_t time) {
  const size_t before = request.history.size();
  for (const std::string& text : texts) add_item(request, text, titles, time);
  const auto first = request.history.begin() + static_cast<std::ptrdiff_t>(before);
  const std::vector<std::string> ordered = recommender.basket({first, request.history.end()});
  request.history.erase(first, request.history.end());
  request.history.insert(request.history.end(), ordered.begin(), ordered.end());
  request.times.resize(request.history.size(), time);
}

std::string item_named(const std::string& text, const qkv::Recommender& recommender, const qkv::Titles& titles) {
  const std::vector<std::string> found = titles.find(text);
  if (found.size() > 1)
    throw qkv::Error(fmt::format("{} is ambiguous; use one of the ids: {}", in_quotes(text), fmt::join(found, ", ")));
  const std::string& item = found.empty() ? text : found.front();
  if (recommender.has_item(item)) return item;
  const std::vector<std::string> near = titles.near(text);
  throw qkv::Error(fmt::format("{} is unknown to the model{}{}", in_quotes(text),
                               near.empty() ? "" : "; similar titles: ", fmt::join(near, ", ")));
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

RecommendLine request_of_line(const std::string& line, const std::shared_ptr<const qkv::RecommendOptions>& options,
                              const qkv::Recommender& recommender, const qkv::Titles& titles, ordered_json& id) {
  const ordered_json json = parse_json_line(line);
  id = json.value("id", ordered_json());
  RecommendLine request;
  request.id = id;
  std::vector<std::vector<std::string>> entries;
  std::vector<int64_t> times;
  request.options = options;
  std::shared_ptr<qkv::RecommendOptions> own_options;
  const auto own = [&]() -> qkv::RecommendOptions& {
    if (!own_options) request.options = own_options = std::make_shared<qkv::RecommendOptions>(*options);
    return *own_options;
  };
  for (const auto& [name, value] : json.items()) {
    if (name == "history") {
      entries = entries_of(name, value);
    } else if (name == "times") {
      times = times_of(name, value);
    } else if (name == "user") {
      request.user = name_of(name, value);
    } else if (name == "similar") {
      request.similar = item_named(name_of(name, value), recommender, titles);
    } else if (name == "include_seen") {
      own().exclude_seen = !boolean_of(name, value);
    } else if (name != "id") {
      OptionSetter setter(name, value, titles);
      visit_fields(own(), setter);
      if (!setter.found())
        throw qkv::Error(fmt::format("unknown name {} (choose from {})", in_quotes(name), known_names()));
    }
  }
  const bool has_history = json.contains("history") || json.contains("user") || json.contains("times");
  if (request.similar && has_history)
    throw qkv::Error("\"similar\" must stand without \"history\", \"times\" and \"user\"");
  if (!request.similar && !json.contains("history") && !json.contains("user"))
    throw qkv::Error("must have \"history\", \"user\" or \"similar\"");
  if (request.similar && request.options->explain) throw qkv::Error("\"similar\" must stand without \"explain\"");
  if (own_options) recommender.check(*own_options);
  qkv::check_times(times, entries.size());
  for (size_t i = 0; i < entries.size(); i++)
    add_basket(request, entries[i], recommender, titles, times.empty() ? qkv::kNoTime : times[i]);
  if (!request.user.is_null()) add_user(request, request.user.get<std::string>(), recommender);
  qkv::check_times(request.times, request.history.size());
  return request;
}
