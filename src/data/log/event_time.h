// Parsing of the times in logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace qkv {

// A time: whole + millionths / 10⁶ with 0 ≤ millionths < 10⁶, in the unit of the log. Dates are in seconds since 1970
// (UTC).
struct EventTime {
  int64_t whole = 0;
  int32_t millionths = 0;
  bool date = false;
};

// Parses a number or a date; returns nothing for other text. Numbers are integers or decimals of 64 bits, which may
// have an exponent (1.7e9), rounded to millionths. Dates are in ISO 8601, 2024-05-01 (or 2024/05/01), optionally with a
// T or a space, 10:30, 10:30:00 or 10:30:00.25, and a zone Z, UTC, GMT, +02, +02:00 or +0200 (UTC if none); the same
// without separators if there is a time of day, 20240501T103000Z; as in mail and HTTP, Wed, 01 May 2024 10:30:00 GMT;
// or in the format of Twitter's API, Wed May 01 10:30:00 +0200 2024.
std::optional<EventTime> parse_event_time(std::string_view text);

// Times as integers in the unit of the log, or in millionths of it once a time has a fraction.
class EventTimes {
 public:
  bool add(const EventTime&
               time);  // false, without a change, if this time, or an earlier one in millionths, overflows int64_t

  std::vector<int64_t> take() { return std::move(values_); }

 private:
  bool scale();

  std::vector<int64_t> values_;
  int64_t unit_ = 1;  // or 10⁶
};

}  // namespace qkv
