// Ranking of targets by a model, block by block of the catalogue: the scores of all items never exist at once.
#pragma once

#include "core/arena.h"
#include "core/function_ref.h"
#include "eval/ranking.h"
#include "model/inference/inference_engine.h"

namespace qkv {

class ModelRanker : public ItemRanker {
 public:
  // Appends numbers to add to the scores of items after a history, in strictly ascending order of the items.
  using AddedScores = FunctionRef<void(const History& history, std::vector<ScoredToken>& added)>;

  // model, arena and the callable of `added` must outlive the ranker.
  ModelRanker(const InferenceEngine& model, bool positions_from_end, Arena& arena, AddedScores added = {})
      : model_(model), positions_from_end_(positions_from_end), arena_(arena), added_(added) {}

  void rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) override;

 private:
  Matrix<float> encode(std::span<const RankingQuery> queries, Context& c) const;

  const InferenceEngine& model_;
  const bool positions_from_end_;
  Arena& arena_;
  const AddedScores added_;
};

}  // namespace qkv
