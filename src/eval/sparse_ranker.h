// Ranking by scores that are the same for all users except those of a few items: popularity, counted transitions. The
// time for a user does not grow with the catalogue.
#pragma once

#include <span>
#include <vector>

#include "core/function_ref.h"
#include "eval/ranking.h"

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

}  // namespace qkv
