// Logs of who did what: how they are read, and what reading them found.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace qkv {

// In the place of the time of an event that has none.
inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

struct InteractionOptions {
  // Where the user, the item and, if a third is named, the time stand: names of the header's columns or of JSON keys,
  // or numbers from 1. Empty: usual names in a header (userId, movieId, timestamp, …), else by their number: user item,
  // user item time, user item rating time.
  std::vector<std::string> columns = {};
  int64_t min_events = 3;  // users with fewer are left out
  int64_t core = 0;        // users and items with fewer events are left out, until all have so many
};

// What was read and what was left out.
struct ReadReport {
  std::vector<std::string> files;  // of each its path, format and columns
  std::string sha256;              // of the files' bytes, one after the other, in hexadecimal
  bool has_times = false;          // else events are in the order of the files
  int64_t lines_read = 0, blank_lines = 0, headers = 0;
  int64_t events_read = 0;
  int64_t incomplete = 0;                     // events without a user, an item or, where the log has times, a time
  int64_t duplicates = 0;                     // events of the same user, item and time as one before: left out
  int64_t ties = 0;                           // events that are kept, with the time of the user's event before them
  int64_t short_users = 0, short_events = 0;  // left out by min_events
  int64_t core_users = 0, core_events = 0;    // left out by core, after that
  int64_t lost_items = 0;                     // that no user who is kept has, or left out by core
  int64_t users = 0, items = 0, events = 0;   // that are kept
  std::string busiest;                        // the user with the most events
  int64_t busiest_events = 0;

  std::vector<std::string> lines() const;  // all of this for the user; what did not happen is not mentioned
};

}  // namespace qkv
