#include "data/log/event_time.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>

#include "core/to_size.h"
#include "data/log/time_cursor.h"

namespace qkv {
namespace {

constexpr int64_t kMillion = 1'000'000;

// Adds the seconds after midnight: 10:30, 10:30:05 or 10:30:05.25, without the colons if `basic`.
bool parse_clock(TimeCursor& text, bool basic, EventTime& time) {
  const std::string_view colon = basic ? "" : ":";
  int hour, minute, second = 0;
  if (!text.number(2, 0, 23, hour) || !text.skip(colon) || !text.number(2, 0, 59, minute)) return false;
  if (basic ? text.starts_with_digit() : text.skip(":")) {
    if (!text.number(2, 0, 60, second)) return false;
    if (text.skip_any(".,") && !text.fraction(time.millionths)) return false;
  }
  time.whole += 3600 * hour + 60 * minute + second;
  return true;
}

// The rest of a text after a day: nothing, or a clock and perhaps a zone.
bool parse_clock_and_zone(TimeCursor& text, bool basic, EventTime& time) {
  if (!parse_clock(text, basic, time)) return false;
  if (text.at_end()) return true;
  text.skip(" ");
  return parse_zone(text, time) && text.at_end();
}

// 2024-05-01T10:30:00Z
std::optional<EventTime> parse_date(TimeCursor text) {
  int year, month, day;
  if (!text.number(4, 0, 9999, year)) return {};
  const std::string_view separator = text.skip("/") ? "/" : "-";
  if ((separator == "-" && !text.skip("-")) || !text.number(2, 1, 12, month) || !text.skip(separator) ||
      !text.number(2, 1, 31, day))
    return {};
  EventTime time{0, 0, true};
  if (!add_day(year, month, day, time)) return {};
  if (text.at_end()) return time;
  if (text.skip_any("Tt ") && parse_clock_and_zone(text, false, time)) return time;
  return {};
}

// 20240501T103000Z; without a time of day it is a number.
std::optional<EventTime> parse_basic_date(TimeCursor text) {
  int year, month, day;
  EventTime time{0, 0, true};
  if (text.number(4, 0, 9999, year) && text.number(2, 1, 12, month) && text.number(2, 1, 31, day) &&
      text.skip_any("Tt ") && add_day(year, month, day, time) && parse_clock_and_zone(text, true, time))
    return time;
  return {};
}

// Wed May 01 10:30:00 +0200 2024
std::optional<EventTime> parse_named_date(TimeCursor text) {
  int weekday, month, day, year;
  EventTime time{0, 0, true};
  if (!text.name(kWeekdays, weekday) || !text.skip(" ") || !text.name(kMonths, month) || !text.skip(" ") ||
      !text.number(2, 1, 31, day) || !text.skip(" ") || !parse_clock(text, false, time) || !text.skip(" "))
    return {};
  if (parse_zone(text, time) && !text.skip(" ")) return {};
  if (text.number(4, 0, 9999, year) && text.at_end() && add_day(year, month, day, time)) return time;
  return {};
}

// Wed, 01 May 2024 10:30:00 GMT
std::optional<EventTime> parse_mail_date(TimeCursor text) {
  int weekday, month, day, year;
  EventTime time{0, 0, true};
  if (text.name(kWeekdays, weekday) && !text.skip(", ")) return {};
  if (text.number_up_to(2, 1, 31, day) && text.skip(" ") && text.name(kMonths, month) && text.skip(" ") &&
      text.number(4, 0, 9999, year) && text.skip(" ") && add_day(year, month, day, time) &&
      parse_clock_and_zone(text, false, time))
    return time;
  return {};
}

// The digits of a decimal number, whose value is 0.DIGITS · 10^point.
struct Decimal {
  std::string digits;
  int64_t point = 0;
  bool negative = false;
};

// Parses 5, -5., .5, 1.25e3. An exponent of more than 400 is too large for a time, or too small to matter.
std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  if (text.starts_with('-') || text.starts_with('+')) {
    decimal.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const size_t mantissa = std::min(text.find_first_of("eE"), text.size());
  const size_t dot = std::min(text.substr(0, mantissa).find('.'), mantissa);
  decimal.digits = text.substr(0, dot);
  if (dot < mantissa) decimal.digits += text.substr(dot + 1, mantissa - dot - 1);
  if (decimal.digits.empty() || decimal.digits.find_first_not_of("0123456789") != decimal.digits.npos) return {};
  decimal.point = static_cast<int64_t>(dot);
  if (mantissa < text.size()) {
    std::string_view power = text.substr(mantissa + 1);
    if (power.starts_with('+') && !power.starts_with("+-")) power.remove_prefix(1);
    int exponent = 0;
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (power.empty() || end != power.data() + power.size() || error != std::errc() || std::abs(exponent) > 400)
      return {};
    decimal.point += exponent;
  }
  const size_t zeros = std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size());
  decimal.digits.erase(0, zeros);
  decimal.point -= static_cast<int64_t>(zeros);
  return decimal;
}

// Rounds to millionths, halves away from zero. Returns nothing if the number exceeds 64 bits.
std::optional<EventTime> event_time(const Decimal& decimal) {
  constexpr int64_t kMostDigits = 19;
  if (decimal.digits.empty()) return EventTime{};
  if (decimal.point > kMostDigits) return {};
  const auto digit = [&](int64_t place) -> uint64_t {  // of 10^(point − 1 − place)
    return place >= 0 && place < std::ssize(decimal.digits)
               ? static_cast<uint64_t>(decimal.digits[to_size(place)] - '0')
               : 0;
  };
  uint64_t whole = 0, millionths = 0;
  for (int64_t i = 0; i < decimal.point; i++) whole = 10 * whole + digit(i);
  for (int64_t i = decimal.point; i < decimal.point + 6; i++) millionths = 10 * millionths + digit(i);
  if (digit(decimal.point + 6) >= 5 && ++millionths == kMillion) whole++, millionths = 0;
  if (whole > static_cast<uint64_t>(INT64_MAX)) return {};
  EventTime time{static_cast<int64_t>(whole), static_cast<int32_t>(millionths), false};
  if (!decimal.negative) return time;
  time.whole = -time.whole - (millionths > 0);
  if (millionths > 0) time.millionths = static_cast<int32_t>(kMillion - static_cast<int64_t>(millionths));
  return time;
}

}  // namespace

bool parse_zone(TimeCursor& text, EventTime& time) {
  for (const std::string_view utc : {"Z", "z", "UTC", "GMT"})
    if (text.skip(utc)) return true;
  int sign = 0, hour = 0, minute = 0;
  if (text.skip("+"))
    sign = 1;
  else if (text.skip("-"))
    sign = -1;
  else
    return false;
  if (!text.number(2, 0, 23, hour)) return false;
  if ((text.skip(":") || text.starts_with_digit()) && !text.number(2, 0, 59, minute)) return false;
  time.whole -= sign * (3600 * hour + 60 * minute);
  return true;
}

bool add_day(int year, int month, int day, EventTime& time) {
  namespace chrono = std::chrono;
  const chrono::year_month_day date{chrono::year(year), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  time.whole += chrono::sys_seconds(chrono::sys_days(date)).time_since_epoch().count();
  return true;
}

std::optional<EventTime> parse_event_time(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const char *begin = text.data(), *end = begin + text.size();
  int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, whole); stop == end && error == std::errc())
    return EventTime{whole, 0, false};
  if (const auto decimal = parse_decimal(text)) return event_time(*decimal);
  for (const auto parse : {parse_date, parse_basic_date, parse_named_date, parse_mail_date})
    if (const std::optional<EventTime> date = parse(TimeCursor(text))) return date;
  return {};
}

bool EventTimes::add(const EventTime& time) {
  if (time.millionths != 0 && unit_ == 1 && !scale()) return false;
  int64_t value = time.whole;
  if (unit_ != 1 &&
      (__builtin_mul_overflow(value, unit_, &value) || __builtin_add_overflow(value, int64_t{time.millionths}, &value)))
    return false;
  values_.push_back(value);
  return true;
}

bool EventTimes::scale() {
  constexpr int64_t kMost = INT64_MAX / kMillion;
  if (!std::ranges::all_of(values_, [](int64_t value) { return value >= -kMost && value <= kMost; })) return false;
  for (int64_t& value : values_) value *= kMillion;
  unit_ = kMillion;
  return true;
}

}  // namespace qkv
