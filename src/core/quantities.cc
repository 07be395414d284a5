// Sizes and times as people write them: "2M", "500 ms".
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "core/ascii.h"
#include "core/fail.h"
#include "core/json.h"
#include "qkv/field.h"

namespace qkv {
namespace {

constexpr std::string_view kPowers = "kmgt";
constexpr double kLongest = 1e9;  // seconds

// A unit of time: `multiple` seconds, or one of `parts` of a second.
struct TimeUnit {
  std::string_view name;
  double multiple, parts;
};
constexpr TimeUnit kTimeUnits[] = {{"s", 1, 1}, {"ms", 1, 1000}, {"min", 60, 1}, {"h", 3600, 1}};

bool starts_with_digit(std::string_view text) { return !text.empty() && text[0] >= '0' && text[0] <= '9'; }

// Splits "60 s" into 60 and "s", in lower case. Returns false if the text does not begin with such a number.
template <class Number>
bool split(std::string_view text, Number& number, std::string& unit) {
  if (!starts_with_digit(text)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (rest.size() > 1 && rest[0] == ' ') rest.remove_prefix(1);
  unit = ascii_lower(rest);
  return true;
}

// Returns the power of 1024 of a unit: 1 for "k" and "kib"; 0 for "" and -1 for another text.
int power_of(const std::string& unit) {
  if (unit.empty()) return 0;
  const size_t place = kPowers.find(unit[0]);
  return place != kPowers.npos && (unit.size() == 1 || unit.substr(1) == "ib") ? static_cast<int>(place) + 1 : -1;
}

template <class Text>
std::string accepted(const Range& range, Text&& text_of) {
  const std::string least = range.min_exclusive ? "above " : "at least ",
                    most = range.max_exclusive ? "below " : "at most ";
  const bool has_min = std::isfinite(range.min), has_max = std::isfinite(range.max);
  if (has_min && has_max && !range.min_exclusive && !range.max_exclusive)
    return fmt::format("between {} and {}", text_of(range.min), text_of(range.max));
  std::string words = has_min ? least + text_of(range.min) : "";
  if (has_max) words += (has_min ? " and " : "") + most + text_of(range.max);
  return words;
}

}  // namespace

int64_t parse_bytes(std::string_view text) {
  int64_t number = 0;
  std::string unit;
  const int power = split(text, number, unit) ? power_of(unit) : -1;
  if (power < 0 || number > std::numeric_limits<int64_t>::max() >> (10 * power))
    fail("must be a size in bytes, such as 500, 64K, 2M or 1G (is {})", excerpt(text));
  return number << (10 * power);
}

double parse_duration(std::string_view text) {
  double number = 0;
  std::string unit;
  if (split(text, number, unit))
    for (const auto& [name, multiple, parts] : kTimeUnits)
      if (unit == name || (unit.empty() && name == "s")) {
        const double seconds = number * multiple / parts;
        if (seconds <= kLongest) return seconds;
      }
  fail("must be a time such as 5, 500ms, 60s, 2min or 1h (is {})", excerpt(text));
}

std::string bytes_text(int64_t bytes) {
  size_t power = 0;
  while (bytes != 0 && bytes % 1024 == 0 && power < kPowers.size()) bytes /= 1024, power++;
  constexpr std::string_view kUnits = "KMGT";
  return fmt::format("{}{}", bytes, power == 0 ? "" : kUnits.substr(power - 1, 1));
}

std::string duration_text(double seconds) {
  std::string shortest;
  for (const auto& [name, multiple, parts] : kTimeUnits) {
    const double number = seconds * parts / multiple;
    const std::string text = fmt::format("{}{}", number, name);
    const bool is_shorter = shortest.empty() || text.size() < shortest.size();
    if (number == std::floor(number) && is_shorter && parse_duration(text) == seconds) shortest = text;
  }
  return shortest.empty() ? fmt::format("{}s", seconds) : shortest;
}

std::string accepted_bytes(const QuantityField& field) {
  return accepted(field.range, [](double bytes) { return bytes_text(static_cast<int64_t>(bytes)); });
}
std::string accepted_durations(const QuantityField& field) { return accepted(field.range, duration_text); }

void set_quantity(int64_t& bytes, std::string_view text, const QuantityField& field) {
  const int64_t number = parse_bytes(text);
  if (!field.range.contains(static_cast<double>(number)))
    fail("must be {} (is {})", accepted_bytes(field), excerpt(text));
  bytes = number;
}

void set_quantity(double& seconds, std::string_view text, const QuantityField& field) {
  const double number = parse_duration(text);
  if (!field.range.contains(number)) fail("must be {} (is {})", accepted_durations(field), excerpt(text));
  seconds = number;
}

}  // namespace qkv
