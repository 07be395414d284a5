// Requests of qkv recommend, as lines of text or JSON, and the answers to them.
#include "program/lines/recommend_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "core/fail.h"
#include "core/json.h"
#include "program/lines/request_json.h"
#include "qkv/field.h"
#include "qkv/text.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse_value(std::string_view name, const ordered_json& found, const std::string& accepted) {
  std::string text = found.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "…";
  fail("\"{}\" must be {} (is {})", name, accepted, text);
}

// Returns a name, which may be written as an integer.
std::string name_of(std::string_view field, const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_integer()) refuse_value(field, value, "a string or an integer");
  return value.dump();
}

std::vector<std::string> texts_of(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse_value(field, value, "a list of texts");
  std::vector<std::string> texts;
  for (const ordered_json& entry : value) {
    if (!entry.is_string()) refuse_value(field, value, "a list of texts");
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

std::vector<std::string> name_list(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse_value(field, value, "a list of names");
  std::vector<std::string> names;
  for (const ordered_json& entry : value) names.push_back(name_of(field, entry));
  return names;
}

// A list of names and lists of names.
std::vector<std::vector<std::string>> entries_of(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse_value(field, value, "a list of names");
  std::vector<std::vector<std::string>> entries;
  for (const ordered_json& entry : value)
    entries.push_back(entry.is_array() ? name_list(field, entry) : std::vector{name_of(field, entry)});
  return entries;
}

std::vector<int64_t> times_of(std::string_view field, const ordered_json& value) {
  if (!value.is_array()) refuse_value(field, value, "a list of times");
  std::vector<int64_t> times;
  for (const ordered_json& entry : value) {
    const bool fits = entry.is_number_integer() && (!entry.is_number_unsigned() || entry.get<uint64_t>() <= INT64_MAX);
    if (!fits && !entry.is_null()) refuse_value(field, entry, "integers or null");
    times.push_back(entry.is_null() ? kNoTime : entry.get<int64_t>());
  }
  return times;
}

bool boolean_of(std::string_view field, const ordered_json& value) {
  if (!value.is_boolean()) refuse_value(field, value, "true or false");
  return value.get<bool>();
}

// Sets the option of a given name from a value of JSON. allow and deny may hold titles.
class OptionSetter {
 public:
  OptionSetter(std::string_view name, const ordered_json& value, const Titles& titles)
      : name_(name), value_(value), titles_(titles) {}

  void operator()(std::string_view name, int64_t& member, const Field& field) {
    if (!is_named(name)) return;
    if (!value_.is_number_integer() || !field.range.contains(value_.get<double>()))
      refuse_value(name, value_, "an integer " + to_string(field.range));
    member = value_.get<int64_t>();
  }
  void operator()(std::string_view name, double& member, const Field& field) {
    if (!is_named(name)) return;
    if (!value_.is_number() || !field.range.contains(value_.get<double>()))
      refuse_value(name, value_, "a number " + to_string(field.range));
    member = value_.get<double>();
  }
  void operator()(std::string_view name, bool& member, const Field&) {
    if (is_named(name)) member = boolean_of(name, value_);
  }
  void operator()(std::string_view name, std::optional<bool>& member, const Field&) {
    if (is_named(name)) member = boolean_of(name, value_);
  }
  template <class Names>
  void operator()(std::string_view name, Names& member, const Field&) {
    if (!is_named(name)) return;
    const bool has_items = name == "allow" || name == "deny";
    member = has_items ? items_named(name_list(name, value_), titles_) : texts_of(name, value_);
  }
  bool found() const { return found_; }

 private:
  bool is_named(std::string_view name) {
    found_ |= name == name_;
    return name == name_;
  }

  std::string_view name_;
  const ordered_json& value_;
  const Titles& titles_;
  bool found_ = false;
};

std::string known_names() {
  std::string names = "history, times, user, similar, include_seen";
  RecommendOptions options;
  visit_fields(options, [&](std::string_view name, auto&, const Field&) { names += fmt::format(", {}", name); });
  return names + " or id";
}

// Reads the members of a request in their order.
class RecommendLineReader {
 public:
  RecommendLineReader(std::string id, const std::shared_ptr<const RecommendOptions>& options,
                      const Recommender& recommender, const Titles& titles)
      : recommender_(recommender), titles_(titles) {
    line_.id = std::move(id);
    line_.options = options ? options : std::make_shared<RecommendOptions>();
  }

  void read(const std::string& name, const ordered_json& value) {
    if (name == "history") {
      entries_ = entries_of(name, value);
    } else if (name == "times") {
      times_ = times_of(name, value);
    } else if (name == "user") {
      line_.user = name_of(name, value);
    } else if (name == "similar") {
      line_.similar = item_named(name_of(name, value), recommender_, titles_);
    } else if (name == "include_seen") {
      own_options().exclude_seen = !boolean_of(name, value);
    } else if (name != "id") {
      OptionSetter setter(name, value, titles_);
      visit_fields(own_options(), setter);
      if (!setter.found()) fail("unknown name {} (choose from {})", excerpt(name), known_names());
    }
  }

  // Called after all members of the request have been read.
  RecommendLine finish(const ordered_json& request) {
    check_names(request);
    if (own_options_) recommender_.check(*own_options_);
    check_times(times_, entries_.size());
    for (size_t i = 0; i < entries_.size(); i++)
      add_basket(line_, entries_[i], recommender_, titles_, times_.empty() ? kNoTime : times_[i]);
    if (line_.user) add_user(line_, *line_.user, recommender_);
    check_times(line_.times, line_.history.size());
    return std::move(line_);
  }

 private:
  void check_names(const ordered_json& request) const {
    const bool has_events = request.contains("history") || request.contains("user");
    if (line_.similar && (has_events || request.contains("times")))
      fail("\"similar\" must stand without \"history\", \"times\" and \"user\"");
    if (!line_.similar && !has_events) fail("must have \"history\", \"user\" or \"similar\"");
    if (line_.similar && line_.options->explain) fail("\"similar\" must stand without \"explain\"");
  }

  RecommendOptions& own_options() {
    if (!own_options_) line_.options = own_options_ = std::make_shared<RecommendOptions>(*line_.options);
    return *own_options_;
  }

  const Recommender& recommender_;
  const Titles& titles_;
  RecommendLine line_;
  std::shared_ptr<RecommendOptions> own_options_;
  std::vector<std::vector<std::string>> entries_;  // of the history: items at the same time
  std::vector<int64_t> times_;                     // of each entry
};

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

void add_user(RecommendLine& line, const std::string& user, const Recommender& recommender) {
  line.user = user;
  const std::vector<std::string> events = recommender.history(user);
  line.history.insert(line.history.begin(), events.begin(), events.end());
  const std::vector<int64_t> times = recommender.times(user);
  line.times.insert(line.times.begin(), times.begin(), times.end());
}

void add_item(RecommendLine& line, const std::string& text, const Titles& titles, int64_t time) {
  std::vector<std::string> found = titles.find(text);
  if (found.size() > 1) {
    line.ambiguous.emplace_back(text, std::move(found));
    return;
  }
  line.history.push_back(found.empty() ? text : found.front());
  line.times.push_back(time);
}

void add_basket(RecommendLine& line, const std::vector<std::string>& texts, const Recommender& recommender,
                const Titles& titles, int64_t time) {
  const size_t before = line.history.size();
  for (const std::string& text : texts) add_item(line, text, titles, time);
  const auto first = line.history.begin() + static_cast<std::ptrdiff_t>(before);
  const std::vector<std::string> ordered = recommender.basket({first, line.history.end()});
  line.history.erase(first, line.history.end());
  line.history.insert(line.history.end(), ordered.begin(), ordered.end());
  line.times.resize(line.history.size(), time);
}

std::string item_named(const std::string& text, const Recommender& recommender, const Titles& titles) {
  const std::vector<std::string> found = titles.find(text);
  if (found.size() > 1) fail("{} is ambiguous; use one of the ids: {}", excerpt(text), fmt::join(found, ", "));
  const std::string& item = found.empty() ? text : found.front();
  if (recommender.has_item(item)) return item;
  const std::vector<std::string> near = titles.similar(text);
  fail("{} is unknown to the model{}{}", excerpt(text),
       near.empty() ? "" : "; similar titles: ", fmt::join(near, ", "));
}

std::vector<std::string> items_named(const std::vector<std::string>& texts, const Titles& titles) {
  std::vector<std::string> items;
  for (const std::string& text : texts) {
    const std::vector<std::string> found = titles.find(text);
    items.insert(items.end(), found.begin(), found.end());
    if (found.empty()) items.push_back(text);
  }
  return items;
}

RecommendLine parse_recommend_line(std::string_view text, const std::shared_ptr<const RecommendOptions>& options,
                                   const Recommender& recommender, const Titles& titles, std::string& id) {
  id.clear();
  return read_recommend_request(parse_request_json(text), options, recommender, titles, id);
}

RecommendLine read_recommend_request(const ordered_json& request,
                                     const std::shared_ptr<const RecommendOptions>& options,
                                     const Recommender& recommender, const Titles& titles, std::string& id) {
  id.clear();
  if (!request.is_object()) fail("not a JSON object");
  const auto found = request.find("id");
  if (found != request.end() && !found->is_null()) id = json_text(*found);
  RecommendLineReader reader(id, options, recommender, titles);
  for (const auto& [name, value] : request.items()) reader.read(name, value);
  return reader.finish(request);
}

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
