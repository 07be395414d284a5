#include "data/log/guessed_time.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kSmall = 1'000'000;                               // in seconds, twelve days
constexpr size_t kFew = 20;                                         // distinct values
constexpr int64_t kLeastEvents = 100;                               // of which few distinct values say something
constexpr int64_t kUnits[] = {1, 1'000, 1'000'000, 1'000'000'000};  // of a second
constexpr int64_t kLines = 1000;                                    // in which other columns are examined

// Whether a number is a time between 1973 and 2286 in seconds, milliseconds, microseconds or nanoseconds.
bool is_like_time(std::string_view field) {
  const std::optional<EventTime> time = parse_event_time(field);
  if (!time || time->date) return false;
  return std::ranges::any_of(kUnits, [&](int64_t unit) {
    const int64_t seconds = time->whole / unit;
    return seconds >= 100'000'000 && seconds < 10'000'000'000;
  });
}

}  // namespace

void GuessedTime::add(int column, const EventTime& time) {
  column_ = column;
  least_ = events_ == 0 ? time.whole : std::min(least_, time.whole);
  most_ = events_ == 0 ? time.whole : std::max(most_, time.whole);
  events_++;
  dates_ |= time.date;
  if (distinct_.size() <= kFew) distinct_.emplace(time.whole, time.millionths);
}

void GuessedTime::add_line(std::span<const std::string_view> fields) {
  if (lines_ == kLines) return;
  lines_++;
  like_times_.resize(std::max(like_times_.size(), fields.size()));
  for (size_t i = 0; i < fields.size(); i++) like_times_[i] += is_like_time(fields[i]);
}

std::optional<int> GuessedTime::other_time() const {
  std::optional<int> found;
  for (size_t i = 0; i < like_times_.size(); i++)
    if (static_cast<int>(i) != column_ && like_times_[i] == lines_) {
      if (found) return {};
      found = static_cast<int>(i);
    }
  return found;
}

std::string GuessedTime::doubt() const {
  if (events_ == 0 || dates_) return "";
  const bool is_small = least_ > -kSmall && most_ < kSmall,
             is_few = distinct_.size() <= kFew && events_ >= kLeastEvents;
  if (!is_small && !is_few) return "";
  const std::string values =
      distinct_.size() <= kFew ? fmt::format("only {} distinct values, from {} to {}", distinct_.size(), least_, most_)
                               : fmt::format("small values, from {} to {}", least_, most_);
  const std::optional<int> other = other_time();
  std::string remedy = "; if these are ratings or counts, set columns to 1,2 (or to USER,ITEM,TIME)";
  if (other) {
    remedy = fmt::format("; the values of column {} are like times: ", *other + 1);
    remedy += *other > 1 ? fmt::format("set columns to 1,2,{}", *other + 1)
                         : fmt::format("set columns to USER,ITEM,{}, with the numbers of the others", *other + 1);
  }
  return fmt::format("column {} is taken as the time because of its place, but has {}{}", column_ + 1, values, remedy);
}

}  // namespace qkv
