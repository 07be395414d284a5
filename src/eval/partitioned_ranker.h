// Ranking whose queries are dealt out to several processes.
#pragma once

#include <cstdint>
#include <span>

#include "eval/ranking.h"
#include "ranks/rank_partition.h"

namespace qkv {

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
