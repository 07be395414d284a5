// How well a ranking of items foretells what users did next.
#pragma once

#include <array>
#include <cstdint>

namespace qkv {

constexpr std::array<int64_t, 3> kCutoffs = {5, 10, 20};

// Means over the users that have a target, whose rank is 1 + the number of other candidates that score as high or
// higher: ties count against the model, and so does NaN. With one target, of rank r:
struct RankingScore {
  std::array<double, 3> hr{};    // at each cutoff k: 1 if r <= k, else 0 (the recall)
  std::array<double, 3> ndcg{};  // 1 / log2(1 + r) if r <= k, else 0
  std::array<double, 3> mrr{};   // 1 / r if r <= k, else 0
  double coverage = 0;           // share of all items that are among some user's best 10, those in the history left out
  int64_t users = 0;             // with a target and a history
  int64_t no_target = 0;         // users that the split gives nothing to foretell
  int64_t no_history = 0;        // users whose target is their first event: not in the means
};

}  // namespace qkv
