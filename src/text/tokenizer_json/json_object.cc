#include "text/tokenizer_json/json_object.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {

using nlohmann::json;

namespace {

constexpr size_t kMaxSteps = 64;

}  // namespace

JsonObject::JsonObject(const json& value, std::string where, std::initializer_list<std::string_view> members)
    : value_(value), where_(std::move(where)) {
  if (!value.is_object()) fail("{} is {}, expected an object", where_, describe(value));
  for (const auto& [name, member] : value.items())
    if (std::ranges::find(members, name) == members.end()) fail("{} is not supported", at(excerpt(name)));
}

const json* JsonObject::find(const std::string& name) const {
  const auto place = value_.find(name);
  return place == value_.end() || place->is_null() ? nullptr : &*place;
}

std::string JsonObject::at(std::string_view name) const {
  return fmt::format("{}{}{}", where_, where_.ends_with(':') ? " " : ".", name);
}

bool JsonObject::flag(const std::string& name, bool otherwise) const {
  const json* found = find(name);
  if (found && !found->is_boolean()) wrong(name, "true or false");
  return found ? found->get<bool>() : otherwise;
}

std::string JsonObject::text(const std::string& name) const {
  const json* found = find(name);
  if (!found || !found->is_string()) wrong(name, "a string");
  return found->get<std::string>();
}

std::string JsonObject::text(const std::string& name, const std::string& otherwise) const {
  return find(name) ? text(name) : otherwise;
}

int64_t JsonObject::integer(const std::string& name) const {
  const json* found = find(name);
  if (!found || !found->is_number_unsigned() || found->get<uint64_t>() > INT32_MAX) wrong(name, "an integer from 0");
  return found->get<int64_t>();
}

int64_t JsonObject::integer(const std::string& name, int64_t otherwise) const {
  return find(name) ? integer(name) : otherwise;
}

const json& JsonObject::array(const std::string& name) const {
  const json* found = find(name);
  if (!found || !found->is_array()) wrong(name, "an array");
  return *found;
}

void JsonObject::wrong(const std::string& name, std::string_view expected) const {
  const json* found = find(name);
  fail("{} is {}, expected {}", at(name), found ? describe(*found) : "missing", expected);
}

std::string JsonObject::describe(const json& value) {
  if (value.is_string()) return excerpt(value.get_ref<const std::string&>());
  return value.is_structured() ? fmt::format("an {}", value.type_name()) : value.dump();
}

std::string type_of(const json* value) {
  if (!value) return "null";
  const auto type = value->is_object() ? value->find("type") : value->end();
  return type != value->end() && type->is_string() ? type->get<std::string>() : JsonObject::describe(*value);
}

std::vector<std::pair<const json*, std::string>> steps_of(const json* value, const std::string& where,
                                                          const std::string& list) {
  if (!value) return {};
  if (type_of(value) != "Sequence") return {{value, where}};
  const JsonObject sequence(*value, where, {"type", list});
  std::vector<std::pair<const json*, std::string>> steps;
  size_t count = 0;
  for (const json& step : sequence.array(list)) {
    auto inner = steps_of(&step, fmt::format("{}[{}]", sequence.at(list), count++), list);
    steps.insert(steps.end(), inner.begin(), inner.end());
    if (steps.size() > kMaxSteps) fail("{}: must have at most {} steps", sequence.at(list), kMaxSteps);
  }
  return steps;
}

}  // namespace qkv
