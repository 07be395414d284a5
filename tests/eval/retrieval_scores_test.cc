// Measures of retrieval against figures of scikit-learn 1.9 and by hand.
#include "eval/retrieval_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using Ranks = std::vector<int64_t>;

TEST(RetrievalScores, OfOneRelevantTextFollowFromItsRank) {
  const RetrievalScores scores = retrieval_scores(Ranks{1, 3, 10, 11});
  EXPECT_EQ(scores.queries, 4);
  EXPECT_DOUBLE_EQ(scores.mrr_10, (1 + 1. / 3 + 1. / 10) / 4);
  EXPECT_DOUBLE_EQ(scores.ndcg_10, (1 + 0.5 + 1 / std::log2(11)) / 4);
  EXPECT_EQ(scores.recall_1, 0.25);
  EXPECT_EQ(scores.recall_10, 0.75);
}

TEST(RetrievalScores, OfSeveralRelevantTextsAreTheirMeans) {
  const RetrievalScores one = retrieval_scores(Ranks{2, 5, 12}, Ranks{0, 3});
  EXPECT_EQ(one.mrr_10, 0.5);
  EXPECT_NEAR(one.ndcg_10, 0.4776237035032179, 1e-15);  // sklearn.metrics.ndcg_score(k=10)
  EXPECT_EQ(one.recall_1, 0);
  EXPECT_DOUBLE_EQ(one.recall_10, 2. / 3);
  const RetrievalScores two = retrieval_scores(Ranks{2, 5, 12, 1, 2}, Ranks{0, 3, 5});
  EXPECT_EQ(two.queries, 2);
  EXPECT_DOUBLE_EQ(two.mrr_10, 0.75);
  EXPECT_DOUBLE_EQ(two.ndcg_10, (one.ndcg_10 + 1) / 2);
  EXPECT_DOUBLE_EQ(two.recall_1, 0.25);
  EXPECT_DOUBLE_EQ(two.recall_10, (2. / 3 + 1) / 2);
}

TEST(RetrievalScores, MoreThanTenRelevantTextsCanHaveTheFullGain) {
  Ranks ranks(12);
  std::iota(ranks.begin(), ranks.end(), int64_t{1});
  const RetrievalScores scores = retrieval_scores(ranks, Ranks{0, 12});
  EXPECT_EQ(scores.ndcg_10, 1);
  EXPECT_DOUBLE_EQ(scores.recall_10, 10. / 12);
}

TEST(RetrievalScores, AreZeroWithoutQueries) {
  const RetrievalScores scores = retrieval_scores(Ranks{});
  EXPECT_EQ(scores.queries, 0);
  EXPECT_EQ(scores.ndcg_10, 0);
  EXPECT_EQ(scores.recall_10, 0);
}

TEST(RetrievalScores, InvalidRanksAreRejected) {
  for (const auto& [ranks, offsets, expected] : std::initializer_list<std::tuple<Ranks, Ranks, std::string>>{
           {{0}, {0, 1}, "ranks: must be at least 1 (found 0)"},
           {{2, 1}, {0, 2}, "ranks: those of a query must ascend without repetition"},
           {{2, 2}, {0, 2}, "ranks: those of a query must ascend without repetition"},
           {{1}, {0, 0, 1}, "ranks: a query has no relevant text"},
           {{1}, {}, "offsets: must ascend from 0 to the number of ranks (1)"},
           {{1}, {0}, "offsets: must ascend from 0 to the number of ranks (1)"},
           {{1}, {1, 1}, "offsets: must ascend from 0 to the number of ranks (1)"},
           {{1, 2}, {0, 3, 2}, "offsets: must ascend from 0 to the number of ranks (2)"}})
    EXPECT_EQ(testing::error_of([&] { retrieval_scores(ranks, offsets); }), expected);
}

TEST(RankOf, CountsCandidatesThatAreNotBelow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(rank_of(std::vector<float>{0.5, 0.9, 0.1}, 1), 1);
  EXPECT_EQ(rank_of(std::vector<float>{0.5, 0.9, 0.1}, 0), 2);
  EXPECT_EQ(rank_of(std::vector<float>{0.5, 0.5, 0.5}, 1), 3);
  EXPECT_EQ(rank_of(std::vector<float>{nan, 0.9, 0.1}, 1), 2);
  EXPECT_EQ(rank_of(std::vector<float>{nan, 0.9, 0.1}, 0), 3);
  EXPECT_EQ(rank_of(std::vector<float>{-1}, 0), 1);
}

}  // namespace
}  // namespace qkv
