// Rankers for evaluation. SparseRanker needs only the scores that differ between users (popularity, transitions);
// PartitionedRanker divides the queries among processes. ranking.h has the interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "eval/ranking.h"
#include "ranks/rank_partition.h"

namespace qkv {

class SparseRanker : public ItemRanker {
 public:
  // Appends the items whose score after a history differs, each once, with their scores.
  using ChangedScores = FunctionRef<void(const History& history, std::vector<ScoredToken>& changed)>;

  // common: the scores of all items, without NaN. The callable of `changed` must outlive the ranker.
  SparseRanker(std::span<const float> common, ChangedScores changed = {});

  void rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) override;

 private:
  void rank(const RankingQuery& query, RankingAnswer& answer) const;

  std::vector<float> common_;
  std::vector<ScoredToken> order_;  // of common_, best first
  ChangedScores changed_;
};

class PartitionedRanker : public ItemRanker {
 public:
  // Each rank answers its part of the queries by `ranker`, which ranks `items` items, and gets the other answers. All
  // ranks make the same calls. The ranker must outlive this one.
  PartitionedRanker(ItemRanker& ranker, int64_t items, const RankPartition& partition)
      : ranker_(ranker), items_(items), partition_(partition) {}

  void rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) override;

 private:
  void rank_own(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers);

  ItemRanker& ranker_;
  int64_t items_;
  RankPartition partition_;
};

}  // namespace qkv
