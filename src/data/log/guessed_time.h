// Doubts about a column that is taken as the time because of its place.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/log/event_time.h"

namespace qkv {

// Collects the values of the column: ratings, counts and positions are smaller than times, and ratings are few.
class GuessedTime {
 public:
  // column: from 0.
  void add(int column, const EventTime& time);
  // The fields of a line, in which another column may be the time.
  void add_line(std::span<const std::string_view> fields);

  // Returns why the column may not be the time, and what to set; "" if nothing says so.
  std::string doubt() const;

 private:
  // The only other column whose values are like seconds, or parts of a second, since 1970.
  std::optional<int> other_time() const;

  int column_ = -1;
  int64_t events_ = 0, least_ = 0, most_ = 0, lines_ = 0;
  bool dates_ = false;
  std::set<std::pair<int64_t, int32_t>> distinct_;  // the first few
  std::vector<int64_t> like_times_;                 // by column: lines whose field is like a time, of the first lines
};

}  // namespace qkv
