#include "convert/settings.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"

namespace qkv {

Settings::Settings(std::string_view text, std::string where)
    : where_(std::move(where)), object_(std::make_unique<nlohmann::json>(parse_json(text, where_))) {
  if (!object_->is_object()) fail("{}: must be a JSON object", where_);
}
Settings::~Settings() = default;

void Settings::wrong(const std::string& name, const char* expected) const {
  if (!find(name)) fail("{}: {} is missing", where_, name);
  fail("{}: {} must be {}", where_, name, expected);
}

const nlohmann::json* Settings::find(const std::string& name) const {
  const auto place = object_->find(name);
  return place == object_->end() || place->is_null() ? nullptr : &*place;
}

bool Settings::has(const std::string& name) const { return object_->contains(name); }

int64_t Settings::integer(const std::string& name) const {
  const nlohmann::json* value = find(name);
  if (!value || !value->is_number_integer()) wrong(name, "an integer");
  if (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    wrong(name, "a 64-bit integer");
  return value->get<int64_t>();
}
int64_t Settings::integer(const std::string& name, int64_t otherwise) const {
  return find(name) ? integer(name) : otherwise;
}

double Settings::number(const std::string& name) const {
  const nlohmann::json* value = find(name);
  if (!value || !value->is_number()) wrong(name, "a number");
  return value->get<double>();
}
double Settings::number(const std::string& name, double otherwise) const {
  return find(name) ? number(name) : otherwise;
}

bool Settings::flag(const std::string& name, bool otherwise) const {
  const nlohmann::json* value = find(name);
  if (!value) return otherwise;
  if (!value->is_boolean()) wrong(name, "true or false");
  return value->get<bool>();
}

std::string Settings::text(const std::string& name) const {
  const nlohmann::json* value = find(name);
  if (!value || !value->is_string()) wrong(name, "a string");
  return value->get<std::string>();
}
std::string Settings::text(const std::string& name, const std::string& otherwise) const {
  return find(name) ? text(name) : otherwise;
}

}  // namespace qkv
