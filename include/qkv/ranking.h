// Ranking metrics of a recommender: how well it predicts the next item of each user.
#pragma once

#include <array>
#include <cstdint>

namespace qkv {

constexpr std::array<int64_t, 3> kCutoffs = {5, 10, 20};

// Means over the users that have a target. The rank of a target is 1 + the number of other candidates with the same or
// a higher score; ties, and NaN, count against the model. For one target of rank r:
struct RankingScore {
  std::array<double, 3> hr{};    // hit rate at each cutoff k: 1 if r <= k, else 0 (equals recall)
  std::array<double, 3> ndcg{};  // 1 / log2(1 + r) if r <= k, else 0
  std::array<double, 3> mrr{};   // 1 / r if r <= k, else 0
  double coverage = 0;           // share of all items that are in the top 10 of some user, excluding the user's history
  int64_t users = 0;             // users with a target and a history
  int64_t no_target = 0;         // users without a target in this split
  int64_t no_history = 0;        // users whose target is their first event; not in the means
};

}  // namespace qkv
