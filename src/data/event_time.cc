#include "data/event_time.h"

#include <charconv>
#include <chrono>
#include <cmath>

namespace qkv {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr std::string_view kWeekdays = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

// The unparsed rest of a text.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool skip_any(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == characters.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Reads a number of exactly n digits from `least` to `most`.
  bool number(size_t n, int least, int most, int& value) {
    if (rest_.size() < n) return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + n, value);
    if (error != std::errc() || end != rest_.data() + n || value < least || value > most) return false;
    rest_.remove_prefix(n);
    return true;
  }
  // Reads one of the names, which have three letters each; assigns its index, from 1.
  bool name(std::string_view names, int& place) {
    const size_t found = rest_.size() < 3 ? names.npos : names.find(rest_.substr(0, 3));
    if (found == names.npos || found % 3 != 0) return false;
    place = static_cast<int>(found / 3) + 1;
    rest_.remove_prefix(3);
    return true;
  }
  // Reads one or more digits as millionths; digits after the sixth are ignored.
  bool fraction(int32_t& millionths) {
    size_t n = 0;
    millionths = 0;
    for (; n < rest_.size() && rest_[n] >= '0' && rest_[n] <= '9'; n++)
      if (n < 6) millionths = 10 * millionths + (rest_[n] - '0');
    for (size_t i = n; i < 6; i++) millionths *= 10;
    rest_.remove_prefix(n);
    return n > 0;
  }

 private:
  std::string_view rest_;
};

// Adds the seconds after midnight.
bool parse_clock(Cursor& text, EventTime& time) {
  int hour, minute, second = 0;
  if (!text.number(2, 0, 23, hour) || !text.skip(":") || !text.number(2, 0, 59, minute)) return false;
  if (text.skip(":")) {
    if (!text.number(2, 0, 60, second)) return false;
    if (text.skip(".") && !text.fraction(time.millionths)) return false;
  }
  time.whole += 3600 * hour + 60 * minute + second;
  return true;
}

// Subtracts the offset of the zone from UTC; no zone means UTC.
bool parse_zone(Cursor& text, EventTime& time) {
  int sign = 0, hour = 0, minute = 0;
  text.skip(" ");
  if (text.skip("+"))
    sign = 1;
  else if (text.skip("-"))
    sign = -1;
  else if (!text.skip_any("Zz"))
    text.skip("UTC");
  if (sign != 0) {
    if (!text.number(2, 0, 23, hour)) return false;
    text.skip(":");
    if (!text.number(2, 0, 59, minute)) return false;
  }
  time.whole -= sign * (3600 * hour + 60 * minute);
  return true;
}

// Adds the seconds from 1970 to the start of the day.
bool add_day(int year, int month, int day, EventTime& time) {
  namespace chrono = std::chrono;
  const chrono::year_month_day date{chrono::year(year), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  time.whole += chrono::sys_seconds(chrono::sys_days(date)).time_since_epoch().count();
  return true;
}

// 2024-05-01T10:30:00Z
std::optional<EventTime> parse_date(Cursor text) {
  int year, month, day;
  if (!text.number(4, 0, 9999, year)) return {};
  const std::string_view separator = text.skip("/") ? "/" : "-";
  if ((separator == "-" && !text.skip("-")) || !text.number(2, 1, 12, month) || !text.skip(separator) ||
      !text.number(2, 1, 31, day))
    return {};
  EventTime time{0, 0, true};
  if (!add_day(year, month, day, time)) return {};
  if (text.at_end()) return time;
  if (text.skip_any("Tt ") && parse_clock(text, time) && parse_zone(text, time) && text.at_end()) return time;
  return {};
}

// Wed May 01 10:30:00 +0200 2024
std::optional<EventTime> parse_named_date(Cursor text) {
  int weekday, month, day, year;
  EventTime time{0, 0, true};
  if (text.name(kWeekdays, weekday) && text.skip(" ") && text.name(kMonths, month) && text.skip(" ") &&
      text.number(2, 1, 31, day) && text.skip(" ") && parse_clock(text, time) && parse_zone(text, time) &&
      text.skip(" ") && text.number(4, 0, 9999, year) && text.at_end() && add_day(year, month, day, time))
    return time;
  return {};
}

std::optional<EventTime> event_time(double value) {  // nothing if it is not finite or at least 2^53 in magnitude
  if (!(std::abs(value) < 0x1p53)) return {};
  EventTime time{static_cast<int64_t>(std::floor(value)), 0, false};
  time.millionths = static_cast<int32_t>(std::lround((value - std::floor(value)) * kMillion));
  if (time.millionths == kMillion) time.whole++, time.millionths = 0;
  return time;
}

}  // namespace

std::optional<EventTime> parse_event_time(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const char *begin = text.data(), *end = begin + text.size();
  int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, whole); stop == end && error == std::errc())
    return EventTime{whole, 0, false};
  double decimal = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, decimal); stop == end && error == std::errc())
    return event_time(decimal);
  const std::optional<EventTime> date = parse_date(Cursor(text));
  return date ? date : parse_named_date(Cursor(text));
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
  unit_ = kMillion;
  for (int64_t& value : values_)
    if (__builtin_mul_overflow(value, unit_, &value)) return false;
  return true;
}

}  // namespace qkv
