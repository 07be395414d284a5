// Measures of retrieval: the ranks of the relevant texts among the candidates of each query.
#pragma once

#include <cstdint>
#include <span>

namespace qkv {

// Means over the queries; 0 without queries.
struct RetrievalScores {
  int64_t queries = 0;
  double mrr_10 = 0;     // of 1 / (rank of the first relevant text), or 0 if that rank is above 10
  double ndcg_10 = 0;    // of Σ 1 / log2(1 + rank) over ranks up to 10, divided by the largest such sum
  double recall_1 = 0;   // of the share of the relevant texts that has rank 1
  double recall_10 = 0;  // of the share of the relevant texts with ranks up to 10
};

// Returns the measures of queries with one relevant text each. ranks: of these, from 1. Throws Error for a rank
// below 1.
RetrievalScores retrieval_scores(std::span<const int64_t> ranks);

// Returns the measures of queries with one or more relevant texts. ranks: of the relevant texts of all queries, of each
// query in ascending order without repetition; offsets: query q has ranks offsets[q] … offsets[q + 1] − 1, at least
// one. Throws Error for other offsets or ranks.
RetrievalScores retrieval_scores(std::span<const int64_t> ranks, std::span<const int64_t> offsets);

// Returns the rank of candidate `relevant`, from 1: one more than the number of other candidates whose score is not
// below its own, so ties and NaN count against it. A NaN of its own has the last rank.
int64_t rank_of(std::span<const float> scores, int64_t relevant);

}  // namespace qkv
