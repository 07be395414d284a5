#include "serve/engine/request_object.h"

#include <algorithm>

#include "core/json.h"
#include "qkv/text.h"
#include "serve/http/http_reply.h"

namespace qkv {
namespace {

// Returns a value as a message shows it.
std::string shown(const nlohmann::json& value) {
  if (value.is_string()) return excerpt(value.get_ref<const std::string&>());
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

nlohmann::json parse_body(std::string_view body) {
  try {
    return parse_json(body, "body");
  } catch (const Error& error) {
    throw HttpError(400, error.what());
  }
}

}  // namespace

std::vector<int32_t> token_ids(const nlohmann::json& list, std::string_view name, int64_t vocab) {
  std::vector<int32_t> ids;
  for (const nlohmann::json& id : list) {
    const bool fits = id.is_number_unsigned() && id.get<uint64_t>() < static_cast<uint64_t>(vocab);
    if (!fits)
      refuse_field(name, "must have token ids of the model, from 0 to {} (has {}); with another tokenizer send texts",
                   vocab - 1, shown(id));
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

RequestObject RequestObject::parse(std::string_view body) { return RequestObject(parse_body(body)); }

RequestObject::RequestObject(nlohmann::json object) : object_(std::move(object)) {
  if (!object_.is_object()) refuse(400, "body: must be a JSON object (is {})", shown(object_));
}

const nlohmann::json& RequestObject::get(std::string_view name) {
  static const nlohmann::json null;
  known_.push_back(name);
  const auto member = object_.find(name);
  return member == object_.end() ? null : *member;
}

bool RequestObject::has(std::string_view name) { return !get(name).is_null(); }

std::string RequestObject::text(std::string_view name, std::string otherwise) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return otherwise;
  if (!value.is_string()) refuse_field(name, "must be a string (is {})", shown(value));
  return value.get<std::string>();
}

int64_t RequestObject::integer(std::string_view name, int64_t otherwise, const Range& range) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return otherwise;
  const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  if (!fits || !range.contains(value.get<double>()))
    refuse_field(name, "must be an integer {} (is {})", to_string(range), shown(value));
  return value.get<int64_t>();
}

double RequestObject::number(std::string_view name, double otherwise, const Range& range) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return otherwise;
  if (!value.is_number() || !range.contains(value.get<double>()))
    refuse_field(name, "must be a number {} (is {})", to_string(range), shown(value));
  return value.get<double>();
}

bool RequestObject::flag(std::string_view name, bool otherwise) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) refuse_field(name, "must be true or false (is {})", shown(value));
  return value.get<bool>();
}

size_t RequestObject::choice(std::string_view name, std::span<const std::string_view> names, size_t otherwise) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return otherwise;
  if (const auto found = find_choice(value, names)) return *found;
  refuse_field(name, "must be one of {} (is {})", fmt::join(names, ", "), shown(value));
}

Texts RequestObject::texts(std::string_view name) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return {};
  if (value.is_string()) return {{value.get<std::string>()}, false};
  if (!value.is_array()) refuse_field(name, "must be a string or a list of strings (is {})", shown(value));
  Texts result{{}, true};
  for (const nlohmann::json& entry : value) {
    if (!entry.is_string()) refuse_field(name, "must be a list of strings (has {})", shown(entry));
    result.texts.push_back(entry.get<std::string>());
  }
  return result;
}

std::vector<std::vector<int32_t>> RequestObject::token_lists(std::string_view name, int64_t vocab) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return {};
  if (!value.is_array())
    refuse_field(name, "must be a list of token ids, or a list of such lists (is {})", shown(value));
  if (!value.empty() && !value.front().is_array()) return {token_ids(value, name, vocab)};
  std::vector<std::vector<int32_t>> lists;
  for (const nlohmann::json& list : value) {
    if (!list.is_array()) refuse_field(name, "must be lists of token ids (has {})", shown(list));
    lists.push_back(token_ids(list, name, vocab));
  }
  return lists;
}

void RequestObject::operator()(std::string_view name, uint64_t& member, const Field&) {
  const nlohmann::json& value = get(name);
  if (value.is_null()) return;
  if (!value.is_number_unsigned()) refuse_field(name, "must be an integer, at least 0 (is {})", shown(value));
  member = value.get<uint64_t>();
}

void RequestObject::refuse_others() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string_view near = nearest_name(name, known_);
    HttpError error(400, fmt::format("unknown name {}{}", excerpt(name),
                                     near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near)));
    error.param = excerpt(name);
    throw error;
  }
}

}  // namespace qkv
