#include "data/event_time.h"

#include <charconv>
#include <chrono>
#include <cmath>

namespace qkv {
namespace {

constexpr int64_t kMillion = 1'000'000;

// What is left of a text.
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
  // A number of exactly n digits from `least` to `most`.
  bool number(size_t n, int least, int most, int& value) {
    if (rest_.size() < n) return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + n, value);
    if (error != std::errc() || end != rest_.data() + n || value < least || value > most) return false;
    rest_.remove_prefix(n);
    return true;
  }
  // One digit or more, as millionths; those after the sixth are cut off.
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

// Seconds after midnight, in the zone that the text names.
bool parse_clock(Cursor& text, EventTime& time) {
  int hour, minute, second = 0, zone_hour = 0, zone_minute = 0;
  if (!text.number(2, 0, 23, hour) || !text.skip(":") || !text.number(2, 0, 59, minute)) return false;
  if (text.skip(":")) {
    if (!text.number(2, 0, 60, second)) return false;
    if (text.skip(".") && !text.fraction(time.millionths)) return false;
  }
  int sign = 0;
  if (text.skip("+"))
    sign = 1;
  else if (text.skip("-"))
    sign = -1;
  else if (!text.skip_any("Zz"))
    text.skip(" UTC");
  if (sign != 0) {
    if (!text.number(2, 0, 23, zone_hour)) return false;
    text.skip(":");
    if (!text.number(2, 0, 59, zone_minute)) return false;
  }
  time.whole += 3600 * hour + 60 * minute + second - sign * (3600 * zone_hour + 60 * zone_minute);
  return text.at_end();
}

std::optional<EventTime> parse_date(Cursor text) {
  namespace chrono = std::chrono;
  int year, month, day;
  if (!text.number(4, 0, 9999, year) || !text.skip("-") || !text.number(2, 1, 12, month) || !text.skip("-") ||
      !text.number(2, 1, 31, day))
    return {};
  const chrono::year_month_day date{chrono::year(year), chrono::month(static_cast<unsigned>(month)),
                                    chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return {};
  EventTime time{chrono::sys_seconds(chrono::sys_days(date)).time_since_epoch().count(), 0, true};
  if (text.at_end() || (text.skip_any("Tt ") && parse_clock(text, time))) return time;
  return {};
}

}  // namespace

std::optional<EventTime> event_time(double value) {
  if (!(std::abs(value) < 0x1p53)) return {};
  EventTime time{static_cast<int64_t>(std::floor(value)), 0, false};
  time.millionths = static_cast<int32_t>(std::lround((value - std::floor(value)) * kMillion));
  if (time.millionths == kMillion) time.whole++, time.millionths = 0;
  return time;
}

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
  return parse_date(Cursor(text));
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
