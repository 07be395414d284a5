// The shape of a log: the numbers by which a recipe is fitted to it.
#pragma once

#include <cstdint>
#include <string>

#include "data/log/interactions.h"
#include "data/log/split.h"

namespace qkv {

struct LogShape {
  int64_t users = 0, items = 0, events = 0;
  int64_t targets = 0;                       // training events that the model learns to predict
  int64_t median = 0, p95 = 0, longest = 0;  // events of a user: the median, the 95th percentile and the most
  double repetition = 0;                     // share of the next events whose item the user has had before

  // Returns the smallest of 50, 100 and 200 that 95 % of the users do not exceed, or 200.
  int64_t fitting_length() const;
  double targets_per_item() const { return static_cast<double>(targets) / static_cast<double>(items); }
  std::string line() const;
};

// Measures a log in 4 bytes per item and 8 per user. max_length: of the model, which learns to predict as many of the
// last training events of each user, so that a user with very many counts no more than that; 0 means fitting_length().
// The repetition is that of the targets of the validation, if there are 30 or more, because these are what users do
// next; otherwise also of the targets of training.
LogShape shape_of(const Interactions& data, const Split& split, int64_t max_length = 0);

}  // namespace qkv
