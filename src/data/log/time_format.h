// Parsing of times by a format that the user gives.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/log/event_time.h"

namespace qkv {

// Parses the whole text by a format of strptime, as the date in UTC; returns nothing if it does not match. White space
// in the format matches any amount of it, also none.
//   %Y %m %d     year of 4 digits, month, day; the latter two of 1 or 2 digits
//   %y           year of 2 digits: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068
//   %b %B        name of the month in English, in any case: Sep or September, for both
//   %a %A        name of the weekday, which is not compared with the date
//   %H %I %M %S  hour from 0, hour from 1 to 12, minute, second, of 1 or 2 digits
//   %p           AM or PM, in any case; with %I
//   %f           fraction of the second, 1 to 9 digits; those after the sixth are ignored
//   %z %Z        zone: Z, UTC, GMT, +02, +02:00 or +0200
//   %T %R %D %F  %H:%M:%S, %H:%M, %m/%d/%y, %Y-%m-%d
//   %s           seconds since 1970
//   %%           a percent sign
std::optional<EventTime> parse_time_by(std::string_view format, std::string_view text);

// Throws Error, naming time_format, unless the format has only these directives, and gives a date.
void check_time_format(const std::string& format);

}  // namespace qkv
