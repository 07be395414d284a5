// The shape of a log: the numbers by which a recipe is fitted to it.
#pragma once

#include <cstdint>
#include <string>

#include "data/interactions.h"
#include "data/split.h"

namespace qkv {

struct LogShape {
  int64_t users = 0, items = 0, events = 0;
  int64_t targets = 0;                       // training events that have an event before them
  int64_t median = 0, p95 = 0, longest = 0;  // events of a user: the median, the 95th percentile and the most
  double repetition = 0;                     // share of the events whose item the user has had before

  double targets_per_item() const { return static_cast<double>(targets) / static_cast<double>(items); }
  std::string line() const;
};

// Measures a log in one pass, in 4 bytes per item and 8 per user.
LogShape shape_of(const Interactions& data, const Split& split);

}  // namespace qkv
