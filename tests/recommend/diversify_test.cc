// Diversity of a list by maximal marginal relevance.
#include <gtest/gtest.h>

#include "recommend/item_vectors.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;

// Scores 4, 3, 2, 0, so relevances 1, 3/4, 1/2, 0. Items 10 and 11 have the same direction, 12 and 13 other ones.
const std::vector<ScoredToken> kCandidates = {{4, 10}, {3, 11}, {2, 12}, {0, 13}};
const std::vector<float> kDirections = {1, 0, 1, 0, 0.6f, 0.8f, -1, 0};

Ids chosen(double diversity, int64_t top = 4) {
  Ids ids;
  for (const ScoredToken& item : diversify(kCandidates, {kDirections.data(), 4, 2}, diversity, top))
    ids.push_back(item.token);
  return ids;
}

TEST(Diversify, ZeroKeepsTheOrder) { EXPECT_EQ(chosen(0), (Ids{10, 11, 12, 13})); }

// The second place, by hand: item 11 has 0.75 (1 − λ) − λ, 12 has 0.5 (1 − λ) − 0.6 λ, 13 has λ.
TEST(Diversify, EachItemIsTheBestByRelevanceAndSimilarity) {
  EXPECT_EQ(chosen(0.3), (Ids{10, 13, 11, 12}));
  EXPECT_EQ(chosen(0.2), (Ids{10, 11, 12, 13}));   // 0.4, 0.28, 0.2
  EXPECT_EQ(chosen(0.25), (Ids{10, 11, 13, 12}));  // 0.3125, 0.225, 0.25; then 0.225 and 0.25
  EXPECT_EQ(chosen(1, 2), (Ids{10, 13}));
}

TEST(Diversify, KeepsScoresAndShortLists) {
  const auto found = diversify(kCandidates, {kDirections.data(), 4, 2}, 0.3, 10);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[1].token, 13);
  EXPECT_EQ(found[1].logit, 0);
  EXPECT_TRUE(diversify({}, {nullptr, 0, 2}, 0.3, 10).empty());
  EXPECT_TRUE(diversify(kCandidates, {kDirections.data(), 4, 2}, 0.3, 0).empty());
}

TEST(Diversify, EqualScoresAreEquallyRelevant) {
  const std::vector<ScoredToken> equal = {{2, 5}, {2, 6}, {2, 7}};
  const std::vector<float> directions = {1, 0, 1, 0, 0, 1};
  const auto found = diversify(equal, {directions.data(), 3, 2}, 0.5, 3);
  EXPECT_EQ(found[0].token, 5);
  EXPECT_EQ(found[1].token, 7);
  EXPECT_EQ(found[2].token, 6);
}

TEST(Diversify, ChoosesAmongSeveralTimesAsMany) {
  EXPECT_EQ(candidates_for(10, 0), 10);
  EXPECT_EQ(candidates_for(10, 0.1), 100);
  EXPECT_EQ(candidates_for(1000, 0.1), 5000);
}

}  // namespace
}  // namespace qkv
