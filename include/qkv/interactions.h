// Options and report of reading logs of user-item interactions.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

// The time of an event whose time is unknown.
inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

// Which events are used for validation and test: the last two events of each user (with `holdout` N the last 2 N), all
// events after two points in time, or the last event of some users (5 % and 5 %, at most 10,000 each).
enum class SplitRule { leave_one_out, temporal, users };
constexpr std::array<std::string_view, 3> names_of(SplitRule) { return {"leave_one_out", "temporal", "users"}; }

// Options of reading a log.
struct InteractionOptions {
  // The columns of the user, the item and optionally the time: header names, JSON keys, or numbers from 1. Empty: usual
  // header names (userId, movieId, timestamp, …), otherwise the order user item, user item time, or user item rating
  // time.
  std::vector<std::string> columns = {};
  int64_t min_events = 3;  // drop users with fewer events than this
  int64_t core = 0;        // repeatedly drop users and items with fewer events than this; 0: off
  // Use min_events 2 if most users with two events have no third one.
  bool keep_two_events = false;
  // The text between columns: 1 to 8 characters, or \t. Quotes are as in CSV if it is one character other than a tab.
  // Empty: found by the first line.
  std::string separator = {};
  // The format of the times, in the directives of strptime: %m/%d/%Y, %d.%m.%Y %H:%M (docs/interactions.md). Empty:
  // numbers or ISO 8601.
  std::string time_format = {};
  // Skip lines that cannot be read, and count them. The first line must be valid, and most of the others.
  bool skip_bad_lines = false;
};

// The columns of user, item and time, counted from 0.
struct EventColumns {
  int user = -1, item = -1, time = -1;  // −1: none
  bool header = false;                  // the first line is a header
  bool guessed = false;                 // by their usual order: neither named nor given

  bool found() const { return user >= 0 && item >= 0; }
};

// Finds the columns of a table of events by the names of its columns, as in a file with this header. columns: as in
// InteractionOptions. Throws Error, beginning with `table`.
EventColumns find_event_columns(const std::vector<std::string>& names, const std::vector<std::string>& columns,
                                const std::string& table);

// Counts of what was read and dropped.
struct ReadReport {
  std::vector<std::string> files;  // path, format and columns of each file
  std::string sha256;              // of the concatenated bytes of the files, in hexadecimal
  bool has_times = false;          // if false, events are in the order of the files
  int64_t lines_read = 0, blank_lines = 0, headers = 0;
  int64_t events_read = 0;
  int64_t min_events = 0;                     // the least events of a kept user
  int64_t incomplete = 0;                     // events without a user, an item or, if the log has times, a time
  int64_t bad_lines = 0;                      // skipped by skip_bad_lines
  std::string first_bad_line = {};            // what is wrong with the first of them
  int64_t duplicates = 0;                     // dropped events with the same user, item and time as an earlier one
  int64_t ties = 0;                           // kept events with the same time as the user's previous event
  int64_t short_users = 0, short_events = 0;  // dropped by min_events
  int64_t core_users = 0, core_events = 0;    // dropped by core, after min_events
  int64_t lost_items = 0;                     // dropped by core, or without a kept user
  int64_t users = 0, items = 0, events = 0;   // kept
  std::string busiest;                        // the user with the most events
  int64_t busiest_events = 0;
  std::string time_doubt = {};  // why a column that is taken as the time may be another, and what to set; "": none

  std::vector<std::string> lines() const;  // the report as text; counts of zero are omitted
};

}  // namespace qkv
