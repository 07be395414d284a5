#include "core/fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/fail.h"
#include "core/json.h"
#include "qkv/text.h"

namespace qkv {
namespace {

using nlohmann::json;

// Levenshtein distance: insertions, deletions and replacements of one byte.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances from the prefix of a seen so far to each prefix of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); i++) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); j++) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string found(const json& value) {
  if (value.is_string()) return excerpt(value.get_ref<const std::string&>());
  return value.is_structured() ? fmt::format("an {}", value.type_name()) : value.dump();
}

bool fits_in_64_bits(const json& integer) {
  return !integer.is_number_unsigned() || integer.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
}

}  // namespace

std::string to_string(const Range& range) {
  const bool has_min = std::isfinite(range.min), has_max = std::isfinite(range.max);
  const std::string least = fmt::format("{} {}", range.min_exclusive ? "above" : "at least", range.min),
                    most = fmt::format("{} {}", range.max_exclusive ? "below" : "at most", range.max);
  if (!has_min) return has_max ? most : "finite";
  if (!has_max) return least;
  if (range.min_exclusive || range.max_exclusive) return least + " and " + most;
  return fmt::format("between {} and {}", range.min, range.max);
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names) {
  constexpr size_t kLongest = 64;  // bytes; limits the work on a name from a file
  if (name.size() > kLongest) return {};
  std::string_view nearest;
  size_t least = name.size() / 3 + 2;  // a third of the letters may be wrong
  for (std::string_view known : names)
    if (const size_t distance = edit_distance(name, known); distance < least) least = distance, nearest = known;
  return nearest;
}

void FieldWriter::operator()(std::string_view name, bool value, const Field&) { add(name, value ? "true" : "false"); }
void FieldWriter::operator()(std::string_view name, int64_t value, const Field&) {
  add(name, fmt::format("{}", value));
}
void FieldWriter::operator()(std::string_view name, uint64_t value, const Field&) {
  add(name, fmt::format("{}", value));
}
void FieldWriter::operator()(std::string_view name, double value, const Field&) {
  if (!std::isfinite(value)) fail("{}: {} cannot be written as JSON", name, value);
  add(name, fmt::format("{}", value));  // the shortest text that reads back as the same double
}
void FieldWriter::operator()(std::string_view name, const std::string& value, const Field&) { add(name, quote(value)); }

void FieldWriter::operator()(std::string_view name, const std::vector<std::string>& value, const Field&) {
  std::vector<std::string> quoted;
  for (const std::string& text : value) quoted.push_back(quote(text));
  add(name, fmt::format("[{}]", fmt::join(quoted, ", ")));
}

void FieldWriter::operator()(std::string_view name, const std::vector<int64_t>& value, const Field&) {
  add(name, fmt::format("[{}]", fmt::join(value, ", ")));
}

std::string FieldWriter::quote(std::string_view text) { return json_string(text); }

void FieldWriter::add(std::string_view name, const std::string& value) {
  lines_ += fmt::format("{}  \"{}\": {}", lines_.empty() ? "" : ",\n", name, value);
}

std::string FieldWriter::text() const { return "{\n" + lines_ + "\n}\n"; }

FieldReader::FieldReader(const std::string& text, const std::string& where)
    : where_(where), object_(std::make_unique<json>(parse_json(text, where))) {
  if (!object_->is_object()) fail("{}: must be a JSON object (is {})", where_, found(*object_));
}
FieldReader::~FieldReader() = default;

const json* FieldReader::find(std::string_view name) {
  visited_.push_back(name);
  const auto place = object_->find(name);
  if (place != object_->end()) return &*place;
  missing_.push_back(name);
  return nullptr;
}

bool FieldReader::has(std::string_view name) const { return object_->contains(name); }

bool FieldReader::is_null(std::string_view name) {
  if (!has(name) || !(*object_)[name].is_null()) return false;
  visited_.push_back(name);
  return true;
}

void FieldReader::operator()(std::string_view name, bool& member, const Field&) {
  const json* value = find(name);
  if (!value) return;
  if (!value->is_boolean()) fail("{}: {} must be true or false (is {})", where_, name, found(*value));
  member = value->get<bool>();
}

void FieldReader::operator()(std::string_view name, int64_t& member, const Field&) {
  const json* value = find(name);
  if (!value) return;
  if (!value->is_number_integer()) fail("{}: {} must be an integer (is {})", where_, name, found(*value));
  if (!fits_in_64_bits(*value)) fail("{}: {} must fit in 64 bits (is {})", where_, name, found(*value));
  member = value->get<int64_t>();
}

void FieldReader::operator()(std::string_view name, uint64_t& member, const Field&) {
  const json* value = find(name);
  if (!value) return;
  if (!value->is_number_unsigned()) fail("{}: {} must be a whole number from 0 (is {})", where_, name, found(*value));
  member = value->get<uint64_t>();
}

void FieldReader::operator()(std::string_view name, double& member, const Field&) {
  const json* value = find(name);
  if (!value) return;
  if (!value->is_number()) fail("{}: {} must be a number (is {})", where_, name, found(*value));
  member = value->get<double>();
}

void FieldReader::operator()(std::string_view name, std::string& member, const Field&) {
  const json* value = find(name);
  if (!value) return;
  if (!value->is_string()) fail("{}: {} must be a string (is {})", where_, name, found(*value));
  member = value->get<std::string>();
}

void FieldReader::operator()(std::string_view name, std::vector<std::string>& member, const Field&) {
  const json* value = find(name);
  if (!value) return;
  const auto is_string = [](const json& text) { return text.is_string(); };
  if (!value->is_array() || !std::ranges::all_of(*value, is_string))
    fail("{}: {} must be an array of strings (is {})", where_, name, found(*value));
  member = value->get<std::vector<std::string>>();
}

void FieldReader::operator()(std::string_view name, std::vector<int64_t>& member, const Field&) {
  const json* value = find(name);
  if (!value) return;
  const auto is_valid = [](const json& number) { return number.is_number_integer() && fits_in_64_bits(number); };
  if (!value->is_array() || !std::ranges::all_of(*value, is_valid))
    fail("{}: {} must be an array of integers of 64 bits (is {})", where_, name, found(*value));
  member = value->get<std::vector<int64_t>>();
}

size_t FieldReader::choose(std::string_view name, std::span<const std::string_view> names, size_t otherwise) {
  const json* value = find(name);
  if (!value) return otherwise;
  if (const auto found = find_choice(*value, names)) return *found;
  fail("{}: {} must be one of {} (is {})", where_, name, fmt::join(names, ", "), found(*value));
}

void FieldReader::finish(Missing missing) const {
  for (const auto& [name, value] : object_->items()) {
    if (std::ranges::find(visited_, name) != visited_.end()) continue;
    const std::string_view nearest = nearest_name(name, visited_);
    if (nearest.empty()) fail("{}: unknown name {}", where_, excerpt(name));
    fail("{}: unknown name {}; did you mean \"{}\"?", where_, excerpt(name), nearest);
  }
  if (missing == Missing::refused && !missing_.empty()) fail("{}: missing {}", where_, fmt::join(missing_, ", "));
}

namespace {

template <class Number>
void check_range(std::string_view where, std::string_view name, Number value, const Field& field) {
  if (!field.range.contains(static_cast<double>(value)))
    fail("{}{} must be {} (is {})", where, name, to_string(field.range), value);
}

}  // namespace

void RangeChecker::operator()(std::string_view name, int64_t value, const Field& field) const {
  check_range(where_, name, value, field);
}
void RangeChecker::operator()(std::string_view name, uint64_t value, const Field& field) const {
  check_range(where_, name, value, field);
}
void RangeChecker::operator()(std::string_view name, double value, const Field& field) const {
  check_range(where_, name, value, field);
}
void RangeChecker::operator()(std::string_view name, const std::vector<int64_t>& values, const Field& field) const {
  for (const int64_t value : values) check_range(where_, name, value, field);
}

}  // namespace qkv
