#include "eval/measures.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr AtCutoffs RankingScore::*kMeansOfUsers[] = {
    &RankingScore::hr,        &RankingScore::ndcg, &RankingScore::mrr,      &RankingScore::recall,
    &RankingScore::precision, &RankingScore::map,  &RankingScore::ndcg_full};

double discount(int64_t rank) { return 1 / std::log2(1 + static_cast<double>(rank)); }

// Returns the sum of the discounts of the ranks 1 … n.
double ideal_gain(int64_t n) {
  double gain = 0;
  for (int64_t rank = 1; rank <= n; rank++) gain += discount(rank);
  return gain;
}

}  // namespace

ItemCounts::ItemCounts(const Interactions& data, const Split& split, HeldOut part)
    : events(data.items.size()), users(data.items.size()) {
  std::vector<int32_t> last_user(data.items.size(), -1);
  for (int64_t user = 0; user < data.user_count(); user++) {
    const auto known = data.of(user).first(to_size(split.known(data, user, part)));
    all_users += !known.empty();
    for (const int32_t item : known) {
      const auto i = to_size(item);
      events[i]++;
      if (last_user[i] == static_cast<int32_t>(user)) continue;
      users[i]++;
      last_user[i] = static_cast<int32_t>(user);
    }
  }
}

double ItemCounts::novelty(int32_t item) const {
  const int64_t had = std::max<int64_t>(users[to_size(item)], 1);
  return -std::log2(static_cast<double>(had) / static_cast<double>(all_users));
}

void MeasureSums::add(std::span<const int64_t> ranks, std::span<const int32_t> list) {
  sum_.users++;
  sum_.repeated += std::ranges::count(ranks, kNoRank);
  for (size_t i = 0; i < kCutoffs.size(); i++) add_hits(i, ranks);
  if (!list.empty()) add_list(list);
}

void MeasureSums::add_hits(size_t cutoff, std::span<const int64_t> ranks) {
  const int64_t k = kCutoffs[cutoff], targets = std::ssize(ranks);
  int64_t hits = 0;
  double gain = 0, precisions = 0;
  for (const int64_t rank : ranks) {
    if (rank > k) break;
    hits++;
    gain += discount(rank);
    precisions += static_cast<double>(hits) / static_cast<double>(rank);
  }
  if (hits == 0) return;
  const auto of = [&](AtCutoffs& sum) -> double& { return sum[cutoff]; };
  of(sum_.hr) += 1;
  of(sum_.ndcg) += gain / ideal_gain(std::min(targets, k));
  of(sum_.mrr) += 1 / static_cast<double>(ranks[0]);
  of(sum_.recall) += static_cast<double>(hits) / static_cast<double>(targets);
  of(sum_.precision) += static_cast<double>(hits) / static_cast<double>(k);
  of(sum_.map) += precisions / static_cast<double>(targets);
  of(sum_.ndcg_full) += gain / ideal_gain(k);
}

void MeasureSums::add_list(std::span<const int32_t> list) {
  lists_++;
  double novelty = 0, popularity = 0;
  for (size_t i = 0, cutoff = 0; i < list.size(); i++) {
    uint8_t& place = listed_[to_size(list[i])];
    place = std::min(place, static_cast<uint8_t>(i));
    if (counts_.events.empty()) continue;
    novelty += counts_.novelty(list[i]);
    popularity += static_cast<double>(counts_.events[to_size(list[i])]);
    const auto n = static_cast<int64_t>(i + 1);
    // A shorter list is complete at every larger cutoff.
    for (; cutoff < kCutoffs.size() && (kCutoffs[cutoff] == n || n == std::ssize(list)); cutoff++) {
      sum_.novelty[cutoff] += novelty / static_cast<double>(n);
      sum_.popularity[cutoff] += popularity / static_cast<double>(n);
    }
  }
}

RankingScore MeasureSums::mean() const {
  RankingScore mean = sum_;
  for (const auto measure : kMeansOfUsers)
    for (double& value : mean.*measure) value /= static_cast<double>(std::max<int64_t>(mean.users, 1));
  for (AtCutoffs* measure : {&mean.novelty, &mean.popularity})
    for (double& value : *measure) value /= static_cast<double>(std::max<int64_t>(lists_, 1));
  for (size_t i = 0; i < kCutoffs.size(); i++)
    mean.coverage[i] =
        static_cast<double>(std::ranges::count_if(listed_, [&](uint8_t place) { return place < kCutoffs[i]; })) /
        static_cast<double>(listed_.size());
  return mean;
}

std::vector<std::pair<std::string, double>> named_measures(const RankingScore& score) {
  std::vector<std::pair<std::string, double>> named;
  const auto add = [&](const char* name, const AtCutoffs& values) {
    for (size_t i = 0; i < values.size(); i++) named.emplace_back(fmt::format("{}@{}", name, kCutoffs[i]), values[i]);
  };
  add("HR", score.hr);
  add("NDCG", score.ndcg);
  add("MRR", score.mrr);
  named.emplace_back("coverage@10", score.coverage[1]);
  add("Recall", score.recall);
  add("Precision", score.precision);
  add("MAP", score.map);
  add("NDCG_full", score.ndcg_full);
  named.emplace_back("coverage@5", score.coverage[0]);
  named.emplace_back("coverage@20", score.coverage[2]);
  add("MIUF", score.novelty);
  add("ARP", score.popularity);
  return named;
}

}  // namespace qkv
