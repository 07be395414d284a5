// Conversion of log lines to events: a user, an item and, if the log has them, a time.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "core/fail.h"
#include "data/log/event_fields.h"
#include "data/log/event_time.h"
#include "data/log/name_table.h"
#include "qkv/interactions.h"

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

// Events in the order of the files. Takes 8 bytes per event, 16 with times, in addition to the names.
class EventLog {
 public:
  EventLog(const InteractionOptions& options, ReadReport& report);

  // Throws Error with the file and the line.
  void add_file(const std::string& path);
  // Returns the reason to doubt a column of times that was guessed; "" if there is none.
  std::string time_doubt() const { return guessed_.doubt(); }
  std::string sha256() { return sum_.hex(); }  // hash of the bytes of all files; call once, after the last file

  NameTable users, items;
  std::vector<int32_t> event_users, event_items;
  EventTimes times;

 private:
  struct File;

  void add_line(File& file, int64_t number, std::string_view line);
  void add_valid_line(File& file, std::string_view line);
  void skip_bad_line(File& file, const Error& error);
  void check_bad_lines(const File& file) const;
  void add_fields(File& file);
  void add_json(File& file, std::string_view line);
  void begin_json(File& file, std::string_view line);
  void begin_file(File& file, std::span<const std::string_view> names);
  EventTime parse_time(const File& file, std::string_view text) const;
  void add_time(const File& file, std::string_view text);
  void add_event(File& file, std::string_view user, std::string_view item, std::string_view time);

  const InteractionOptions& options_;
  ReadReport& report_;
  Sha256 sum_;
  const std::optional<EventFormat> format_;  // of the separator that is given
  std::optional<bool> dates_;                // whether times are dates or numbers
  GuessedTime guessed_;
};

}  // namespace qkv
