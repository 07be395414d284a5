// A user's history, and its encoding for a model: the last events in a packed batch, with the times between them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "qkv/interactions.h"

namespace qkv {

// A view of events, oldest first.
struct History {
  std::span<const int32_t> items;
  std::span<const int64_t> times = {};  // one per event, in the unit of the log; empty if unknown

  History first(size_t n) const { return {items.first(n), times.first(times.empty() ? 0 : n)}; }
  History last(size_t n) const { return {items.last(n), times.last(times.empty() ? 0 : n)}; }
};

// A history that owns its events.
struct Events {
  std::vector<int32_t> items;
  std::vector<int64_t> times;

  History history() const { return {items, times}; }
};

// Returns the bucket of a gap, the time between an event and the previous one:
//   0      unknown, because one of the times is unknown or there is no previous event
//   1      0
//   1 + b  a number of b bits, from 2^(b−1) to 2^b − 1
inline int32_t gap_bucket(int64_t before, int64_t time) {  // before <= time
  if (before == kNoTime || time == kNoTime) return 0;
  return 1 + static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(time) - static_cast<uint64_t>(before)));
}

inline constexpr int64_t kGapBuckets = 66;

struct HistoryOptions {
  int64_t max_length = 200;        // only the last max_length events are used
  bool positions_from_end = true;  // the newest event has position max_length − 1; otherwise the oldest used one has 0
  bool gaps = false;               // also append the buckets of the gaps, including that of the oldest event used
};

// Appends the last events of a history as one sequence.
void append_history(const History& history, const HistoryOptions& options, Packed& packed);

}  // namespace qkv
