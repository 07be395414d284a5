// A cursor over the text of a time, for its parsers.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "data/log/event_time.h"

namespace qkv {

// The unparsed rest of a text.
class TimeCursor {
 public:
  explicit TimeCursor(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool starts_with_digit() const { return !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool skip_in_any_case(std::string_view lower) {
    const auto letter = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    if (!std::ranges::equal(rest_.substr(0, lower.size()), lower, {}, letter)) return false;
    rest_.remove_prefix(lower.size());
    return true;
  }
  bool skip_any(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == characters.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Reads a number of exactly n digits from `least` to `most`.
  bool number(size_t n, int least, int most, int& value) {
    if (rest_.size() < n || !starts_with_digit()) return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + n, value);
    if (error != std::errc() || end != rest_.data() + n || value < least || value > most) return false;
    rest_.remove_prefix(n);
    return true;
  }
  // Reads a number of one to n digits.
  bool number_up_to(size_t n, int least, int most, int& value) {
    size_t digits = 0;
    while (digits < std::min(n, rest_.size()) && rest_[digits] >= '0' && rest_[digits] <= '9') digits++;
    return digits > 0 && number(digits, least, most, value);
  }
  // Reads an integer of any size.
  bool whole_number(int64_t& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
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

inline constexpr std::string_view kWeekdays = "SunMonTueWedThuFriSat";
inline constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

// Parses Z, UTC, GMT, or an offset +02, +0200 or +02:00 that is subtracted from the time. Returns false for none.
bool parse_zone(TimeCursor& text, EventTime& time);

// Adds the seconds from 1970 to the start of the day. Returns false if there is no such day.
bool add_day(int year, int month, int day, EventTime& time);

}  // namespace qkv
