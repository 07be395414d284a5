// The history of a user, and how a model reads it: its last events in a packed batch, with the time between them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "data/batch.h"
#include "qkv/interactions.h"

namespace qkv {

// Oldest first.
struct History {
  std::span<const int32_t> items;
  std::span<const int64_t> times = {};  // of each event, in the unit of the log; empty where none is known

  History first(size_t n) const { return {items.first(n), times.first(times.empty() ? 0 : n)}; }
  History last(size_t n) const { return {items.last(n), times.last(times.empty() ? 0 : n)}; }
};

// A history that holds its events.
struct Events {
  std::vector<int32_t> items;
  std::vector<int64_t> times;

  History history() const { return {items, times}; }
};

// The bucket of a gap, the time between an event and the one before it:
//   0      not known, because one of the times is not, or because there is no event before
//   1      0
//   1 + b  a number of b bits, from 2^(b−1) to 2^b − 1
inline constexpr int64_t kGapBuckets = 66;
inline int32_t gap_bucket(int64_t before, int64_t time) {  // before <= time
  if (before == kNoTime || time == kNoTime) return 0;
  return 1 + static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(time) - static_cast<uint64_t>(before)));
}

struct HistoryOptions {
  int64_t max_length = 200;        // events that are read, the last ones
  bool positions_from_end = true;  // the newest event has position max_length − 1; else the oldest that is read has 0
  bool gaps = false;               // with the buckets of gaps; the oldest event that is read has its gap, too
};

void append_history(const History& history, const HistoryOptions& options, Packed& packed);

}  // namespace qkv
