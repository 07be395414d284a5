// Times of events as logs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace qkv {

// whole + millionths / 10⁶, 0 <= millionths < 10⁶, in the unit of the log; of a date, seconds since 1970 (UTC).
struct EventTime {
  int64_t whole = 0;
  int32_t millionths = 0;
  bool date = false;
};

// An integer, a decimal below 2^53, or a date: of ISO 8601, 2024-05-01 (or 2024/05/01), and after a T or a space 10:30,
// 10:30:00 or 10:30:00.25, and after that Z, UTC, +02:00 or +0200 (without a zone it is UTC); or as Twitter's API
// writes it, Wed May 01 10:30:00 +0200 2024. Nothing if the text is none of these.
std::optional<EventTime> parse_event_time(std::string_view text);

// Times as integers: of the log's unit, or of millionths of it once a fraction has come.
class EventTimes {
 public:
  bool add(const EventTime& time);  // false if it, or one before it in millionths, is beyond int64_t

  std::vector<int64_t> take() { return std::move(values_); }

 private:
  bool scale();

  std::vector<int64_t> values_;
  int64_t unit_ = 1;  // or 10⁶
};

}  // namespace qkv
