// Who did what, in time order: what a sequential recommender learns from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/history.h"
#include "qkv/interactions.h"

namespace qkv {

// Users and items are ids 0, 1, … in the order in which the files first name those that are kept.
struct Interactions {
  std::vector<std::string> users, items;  // names by id: valid UTF-8, none twice
  std::vector<int64_t> offsets = {0};     // user u's events are offsets[u] … offsets[u + 1] − 1
  std::vector<int32_t> events;            // item ids, in time order
  std::vector<int64_t> times;             // of each event; empty where the log has none

  bool operator==(const Interactions&) const = default;

  int64_t user_count() const { return static_cast<int64_t>(users.size()); }
  int64_t item_count() const { return static_cast<int64_t>(items.size()); }

  std::span<const int32_t> of(int64_t user) const { return part(events, user); }
  std::span<const int64_t> times_of(int64_t user) const { return part(times, user); }  // empty without times
  History history(int64_t user) const { return {of(user), times_of(user)}; }

 private:
  template <class T>
  std::span<const T> part(const std::vector<T>& values, int64_t user) const {
    if (values.empty()) return {};
    const auto u = static_cast<size_t>(user);
    return std::span(values).subspan(static_cast<size_t>(offsets[u]), static_cast<size_t>(offsets[u + 1] - offsets[u]));
  }
};

// The log in these files, one after the other; "-" is standard input. docs/interactions.md describes the formats. Times
// are in the files' unit, dates in seconds since 1970; both in millionths where any has a fraction. Throws Error that
// names file and line: what LineFile throws, a line that is not of the file's format, a time in one file and none in
// another; and Error if nothing is left.
Interactions read_interactions(const std::vector<std::string>& paths, const InteractionOptions& options,
                               ReadReport& report);

}  // namespace qkv
