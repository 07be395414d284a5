// Ranking metrics of a recommender: how well it predicts the next items of each user, and what it lists.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] qkv {

constexpr std::array<int64_t, 3> kCutoffs = {5, 10, 20};
using AtCutoffs = std::array<double, kCutoffs.size()>;  // one value for each cutoff k

// Means over the users that have a target. The rank of a target is 1 + the number of other candidates with the same or
// a higher score; ties, and NaN, count against the model. Among several targets the better one comes first and does not
// count as a candidate of the others. docs/evaluation-protocols.md has the formulas, which are those of RecTools.
struct RankingScore {
  // R is the set of a user's distinct targets. Those of a rank up to k are hits.
  AtCutoffs hr{};         // hit rate: 1 if there is a hit
  AtCutoffs ndcg{};       // Σ over hits of 1 / log2(1 + rank), divided by that sum over the ranks 1 … min(|R|, k)
  AtCutoffs mrr{};        // 1 / rank of the first hit
  AtCutoffs recall{};     // hits / |R|
  AtCutoffs precision{};  // hits / k
  AtCutoffs map{};        // Σ over hits of hits up to this rank / rank, divided by |R|
  AtCutoffs ndcg_full{};  // as ndcg, divided by the sum over the ranks 1 … k

  // Measures of the k best items of each user by score, without the user's history; equal scores in the order of the
  // items.
  AtCutoffs coverage{};    // share of all items that are listed for some user
  AtCutoffs novelty{};     // mean over users of the mean over listed items of −log2 of the share of users who had the
                           // item before (MIUF); an item that nobody had counts as one that one user had
  AtCutoffs popularity{};  // mean over users of the mean number of earlier events of listed items (ARP)

  int64_t users = 0;        // users with a target and a history, in the sample if there is one
  int64_t no_target = 0;    // users without a target in this split
  int64_t no_history = 0;   // users whose target is their first event; not in the means
  int64_t not_sampled = 0;  // users with a target and a history that the sample leaves out
  int64_t repeated = 0;     // targets of these users that are in their history, which are misses; 0 with repeats
};

// Returns the names and values of the measures: HR@5, HR@10, …; those for one target come first.
std::vector<std::pair<std::string, double>> named_measures(const RankingScore& score);

}  // namespace qkv
