#include "data/log/time_format.h"

#include <array>
#include <cstdint>
#include <limits>

#include "core/fail.h"
#include "core/json.h"
#include "data/log/time_cursor.h"

namespace qkv {
namespace {

constexpr std::array<std::string_view, 12> kMonthNames = {"january",   "february", "march",    "april",
                                                          "may",       "june",     "july",     "august",
                                                          "september", "october",  "november", "december"};
constexpr std::array<std::string_view, 7> kWeekdayNames = {"monday", "tuesday",  "wednesday", "thursday",
                                                           "friday", "saturday", "sunday"};
constexpr std::string_view kDirectives = "YmdybBaAHIMSpfzZTRDFs%";
constexpr std::string_view kSpaces = " \t";

// The format of a directive that stands for several; "" for others.
std::string_view expanded(char directive) {
  switch (directive) {
    case 'T':
      return "%H:%M:%S";
    case 'R':
      return "%H:%M";
    case 'D':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    default:
      return "";
  }
}

// The parts of a time that have been read.
struct Parts {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, half = -1;  // half: 0 AM, 1 PM
  int64_t seconds = std::numeric_limits<int64_t>::min();                             // of %s
  EventTime rest{0, 0, true};  // fraction, and minus the offset of the zone
};

// Reads one of the names in any case, in full or its first three letters; assigns its index.
template <size_t n>
bool read_name(TimeCursor& text, const std::array<std::string_view, n>& names, int& place) {
  for (size_t i = 0; i < n; i++)
    if (text.skip_in_any_case(names[i]) || text.skip_in_any_case(names[i].substr(0, 3))) {
      place = static_cast<int>(i);
      return true;
    }
  return false;
}

bool read_half(TimeCursor& text, int& half) {
  half = text.skip_in_any_case("am") ? 0 : text.skip_in_any_case("pm") ? 1 : -1;
  return half >= 0;
}

bool read_directive(char directive, TimeCursor& text, Parts& parts) {
  int unused;
  switch (directive) {
    case 'Y':
      return text.number(4, 0, 9999, parts.year);
    case 'y':
      if (!text.number(2, 0, 99, parts.year)) return false;
      parts.year += parts.year < 69 ? 2000 : 1900;
      return true;
    case 'm':
      return text.number_up_to(2, 1, 12, parts.month);
    case 'd':
      return text.number_up_to(2, 1, 31, parts.day);
    case 'b':
    case 'B':
      if (!read_name(text, kMonthNames, parts.month)) return false;
      parts.month++;
      return true;
    case 'a':
    case 'A':
      return read_name(text, kWeekdayNames, unused);
    case 'H':
      return text.number_up_to(2, 0, 23, parts.hour);
    case 'I':
      return text.number_up_to(2, 1, 12, parts.hour);
    case 'M':
      return text.number_up_to(2, 0, 59, parts.minute);
    case 'S':
      return text.number_up_to(2, 0, 60, parts.second);
    case 'p':
      return read_half(text, parts.half);
    case 'f':
      return text.fraction(parts.rest.millionths);
    case 'z':
    case 'Z':
      return parse_zone(text, parts.rest);
    case 's':
      return text.whole_number(parts.seconds);
    default:
      return text.skip("%");
  }
}

bool read_parts(std::string_view format, TimeCursor& text, Parts& parts) {
  for (size_t i = 0; i < format.size(); i++) {
    if (kSpaces.find(format[i]) != kSpaces.npos) {
      while (text.skip_any(kSpaces)) continue;
    } else if (format[i] != '%') {
      if (!text.skip(format.substr(i, 1))) return false;
    } else {
      const std::string_view several = expanded(format[++i]);
      if (several.empty() ? !read_directive(format[i], text, parts) : !read_parts(several, text, parts)) return false;
    }
  }
  return true;
}

// Whether the format has one of the directives, alone or in one that stands for several.
bool has(std::string_view format, std::string_view directives) {
  for (size_t i = 0; i + 1 < format.size(); i++) {
    if (format[i] != '%') continue;
    const char directive = format[++i];
    if (directives.find(directive) != directives.npos || has(expanded(directive), directives)) return true;
  }
  return false;
}

}  // namespace

std::optional<EventTime> parse_time_by(std::string_view format, std::string_view text) {
  TimeCursor cursor(text);
  while (cursor.skip_any(kSpaces)) continue;
  Parts parts;
  if (!read_parts(format, cursor, parts)) return {};
  while (cursor.skip_any(kSpaces)) continue;
  if (!cursor.at_end()) return {};
  EventTime time = parts.rest;
  if (parts.seconds != std::numeric_limits<int64_t>::min()) {
    if (__builtin_add_overflow(time.whole, parts.seconds, &time.whole)) return {};
    return time;
  }
  if (parts.half >= 0) parts.hour = parts.hour % 12 + 12 * parts.half;
  time.whole += 3600 * parts.hour + 60 * parts.minute + parts.second;
  if (!add_day(parts.year, parts.month, parts.day, time)) return {};
  return time;
}

void check_time_format(const std::string& format) {
  for (size_t i = 0; i < format.size(); i++) {
    if (format[i] != '%') continue;
    if (++i == format.size() || kDirectives.find(format[i]) == kDirectives.npos)
      fail(
          "time_format {}: unknown directive %{} (choose from %Y %m %d %y %b %B %a %A %H %I %M %S %p %f %z %Z %T %R %D "
          "%F %s %%)",
          excerpt(format), i == format.size() ? "" : format.substr(i, 1));
  }
  if (has(format, "s")) return;
  if (!has(format, "Yy") || !has(format, "mbB") || !has(format, "d"))
    fail("time_format {}: must have a year, a month and a day, such as %m/%d/%Y or %d.%m.%Y %H:%M", excerpt(format));
  if (has(format, "p") != has(format, "I"))
    fail("time_format {}: %I and %p, the hour from 1 to 12 and AM or PM, need each other", excerpt(format));
}

}  // namespace qkv
