// Events that clients report while the server runs: who did what, and when. They are kept in a file and, as far as
// histories need them, in memory.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serve/api/append_file.h"

namespace qkv {

struct UserEvent {
  std::string user, item;  // 1 to EventStore::kMaxName bytes of UTF-8 without control characters
  int64_t time = 0;        // microseconds since 1970, at least 0 and before the year 10000
  std::string type = {};   // such as "like"; at most EventStore::kMaxName bytes; may be empty
  double value = 0;        // such as a rating; finite
};

// The file is a log that `qkv train recommend --data` reads (docs/interactions.md), with tabs between its columns:
//   user  item  timestamp:UNIT  feedback  value  following
// UNIT is s, ms or us, since 1970. `following` is the number of rows of the same request that come after the row, by
// which a request that a crash left incomplete is recognized and removed.
//
// The memory is limited: kMaxEvents events of a user, the latest, and `memory` bytes in all. Beyond that the users
// whose last events arrived first are forgotten. The file keeps all. Thread-safe.
class EventStore {
 public:
  static constexpr size_t kMaxName = 256, kMaxEvents = 1000, kMaxRows = 10'000;
  static constexpr size_t kMemory = size_t{256} << 20;

  struct Event {
    std::string item;
    int64_t time;  // microseconds since 1970
  };

  // Opens the file, or creates it for times in this unit: 1, 1000 or 1,000,000 ticks a second. Throws Error, naming
  // file and line, if it cannot be opened or its content is not as above.
  EventStore(const std::string& path, int64_t ticks, size_t memory = kMemory);

  // Throws Error, naming what is wrong, if the event is not as described at UserEvent.
  static void check(const UserEvent& event);

  // Appends the events of one request, at most kMaxRows: all or none. `done`, which may be null, is called on the
  // thread of the file: with "" once they are on disk and part of the histories, else with the reason. Returns false if
  // too much waits.
  bool append(std::vector<UserEvent> events, AppendFile::Done done);

  // Returns the events of a user in the order of their times, those of equal times as they arrived; empty for an
  // unknown user. An event with the same item and time as an earlier one is left out, as in training.
  std::vector<Event> history(std::string_view user) const;

  int64_t ticks() const { return ticks_; }  // of the file, per second
  size_t users() const;
  size_t memory() const;  // bytes of the histories, about

 private:
  struct User {
    std::string name;
    std::vector<Event> events;
    size_t bytes = 0;
  };
  using Users = std::list<User>;  // in the order of their last events

  void load();
  void create();
  std::string row(const UserEvent& event, size_t following) const;
  UserEvent parse_row(const AppendFile::Line& line, size_t& following) const;
  void add(UserEvent event);
  Users::iterator find_or_add(const std::string& name);
  void forget(Users::iterator user);

  const size_t most_memory_;
  int64_t ticks_;
  mutable std::mutex mutex_;  // of the following
  Users users_;
  std::unordered_map<std::string_view, Users::iterator> by_name_;
  size_t memory_ = 0;
  AppendFile file_;  // ends first: its thread uses the members above
};

}  // namespace qkv
