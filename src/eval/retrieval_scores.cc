#include "eval/retrieval_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kRetrieved = 10;  // ranks that count

double gain_at(int64_t rank) { return 1 / std::log2(1 + static_cast<double>(rank)); }

void check_ranks(std::span<const int64_t> ranks) {
  if (ranks.empty()) fail("ranks: a query has no relevant text");
  if (ranks[0] < 1) fail("ranks: must be at least 1 (found {})", ranks[0]);
  if (std::ranges::adjacent_find(ranks, std::greater_equal()) != ranks.end())
    fail("ranks: those of a query must ascend without repetition");
}

void check_offsets(std::span<const int64_t> offsets, size_t ranks) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != static_cast<int64_t>(ranks) ||
      !std::ranges::is_sorted(offsets))
    fail("offsets: must ascend from 0 to the number of ranks ({})", ranks);
}

void add_query(std::span<const int64_t> ranks, RetrievalScores& sums) {
  double gain = 0, ideal = 0;
  int64_t hits = 0;
  for (const int64_t rank : ranks) {
    if (rank > kRetrieved) break;
    gain += gain_at(rank);
    hits++;
  }
  const auto relevant = static_cast<double>(ranks.size());
  for (int64_t rank = 1; rank <= std::min(std::ssize(ranks), kRetrieved); rank++) ideal += gain_at(rank);
  sums.mrr_10 += hits > 0 ? 1 / static_cast<double>(ranks[0]) : 0;
  sums.ndcg_10 += gain / ideal;
  sums.recall_1 += ranks[0] == 1 ? 1 / relevant : 0;
  sums.recall_10 += static_cast<double>(hits) / relevant;
}

}  // namespace

RetrievalScores retrieval_scores(std::span<const int64_t> ranks) {
  std::vector<int64_t> offsets(ranks.size() + 1);
  std::iota(offsets.begin(), offsets.end(), int64_t{0});
  return retrieval_scores(ranks, offsets);
}

RetrievalScores retrieval_scores(std::span<const int64_t> ranks, std::span<const int64_t> offsets) {
  check_offsets(offsets, ranks.size());
  RetrievalScores scores;
  scores.queries = std::ssize(offsets) - 1;
  for (size_t query = 0; query + 1 < offsets.size(); query++) {
    const auto of_query = ranks.subspan(to_size(offsets[query]), to_size(offsets[query + 1] - offsets[query]));
    check_ranks(of_query);
    add_query(of_query, scores);
  }
  const auto queries = static_cast<double>(std::max<int64_t>(scores.queries, 1));
  for (double* mean : {&scores.mrr_10, &scores.ndcg_10, &scores.recall_1, &scores.recall_10}) *mean /= queries;
  return scores;
}

int64_t rank_of(std::span<const float> scores, int64_t relevant) {
  const float own = scores[to_size(relevant)];
  return std::ranges::count_if(scores, [&](float score) { return !(score < own); });
}

}  // namespace qkv
