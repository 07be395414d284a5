// The measures of a ranking, summed over users. The formulas are those of RecTools 0.19 (rectools/metrics).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "data/log/interactions.h"
#include "data/log/split.h"
#include "qkv/evaluate.h"

namespace qkv {

constexpr int64_t kListed = kCutoffs.back();                      // items per list
constexpr int64_t kNoRank = std::numeric_limits<int64_t>::max();  // of a target that is no candidate

// How often each item occurs in the events that precede a held-out part.
struct ItemCounts {
  std::vector<int64_t> events, users;  // by item; users: those with at least one of these events
  int64_t all_users = 0;               // users with any event before the part

  ItemCounts() = default;
  ItemCounts(const Interactions& data, const Split& split, HeldOut part);

  // Returns −log2 of the share of users who had the item.
  double novelty(int32_t item) const;
};

class MeasureSums {
 public:
  // counts: of `items` items; without events, novelty and popularity are 0. Must outlive the sums.
  MeasureSums(int64_t items, const ItemCounts& counts) : counts_(counts), listed_(to_size(items), kNever) {}

  // Adds a user. ranks: of the targets, at least one, ascending from 1 or kNoRank; a rank above kListed counts as no
  // hit. list: the best items, best first, at most kListed.
  void add(std::span<const int64_t> ranks, std::span<const int32_t> list);

  // Returns the means over the users, 0 if there are none, and their number.
  RankingScore mean() const;

 private:
  static constexpr uint8_t kNever = 255;

  void add_hits(size_t cutoff, std::span<const int64_t> ranks);
  void add_list(std::span<const int32_t> list);

  const ItemCounts& counts_;
  RankingScore sum_;
  int64_t lists_ = 0;            // lists that are not empty
  std::vector<uint8_t> listed_;  // the best place of each item in any list, from 0
};

}  // namespace qkv
