// User-item interactions in time order: the training data of a sequential recommender.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "core/vector_bytes.h"
#include "data/log/history.h"
#include "qkv/interactions.h"

namespace qkv {

// A log of interactions. Users and items have ids 0, 1, … in the order in which the files first mention those that are
// kept.
struct Interactions {
  std::vector<std::string> users, items;  // names by id: valid UTF-8, unique
  std::vector<int64_t> offsets = {0};     // user u's events are offsets[u] … offsets[u + 1] − 1
  std::vector<int32_t> events;            // item ids, in time order
  std::vector<int64_t> times;             // one per event; empty if the log has none

  bool operator==(const Interactions&) const = default;

  int64_t user_count() const { return static_cast<int64_t>(users.size()); }
  int64_t item_count() const { return static_cast<int64_t>(items.size()); }

  std::span<const int32_t> of(int64_t user) const { return part(events, user); }
  std::span<const int64_t> times_of(int64_t user) const { return part(times, user); }  // empty without times
  History history(int64_t user) const { return {of(user), times_of(user)}; }

  size_t bytes() const {
    return vector_bytes(users) + vector_bytes(items) + vector_bytes(offsets) + vector_bytes(events) +
           vector_bytes(times);
  }

 private:
  template <class T>
  std::span<const T> part(const std::vector<T>& values, int64_t user) const {
    if (values.empty()) return {};
    const auto u = to_size(user);
    return std::span(values).subspan(to_size(offsets[u]), to_size(offsets[u + 1] - offsets[u]));
  }
};

// Reads a log from files, in order; "-" is standard input. docs/interactions.md describes the formats. Times are in the
// unit of the files, dates in seconds since 1970; both are in millionths of that if any of them has a fraction. Throws
// Error with file and line if LineFile does, if a line does not match the format of its file, or if one file has times
// and another does not. Throws Error if no events remain.
Interactions read_interactions(const std::vector<std::string>& paths, const InteractionOptions& options,
                               ReadReport& report);

}  // namespace qkv
