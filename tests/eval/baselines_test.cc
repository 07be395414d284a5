// The popularity and Markov-chain baselines, on small logs and against the published figures for MovieLens-1M.
#include "eval/baselines.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "eval/ranking.h"

namespace qkv {
namespace {

constexpr const char* kMovieLens = QKV_SHARED_DIR "/data/ml-1m/ml-1m.txt";

// Items 0 … 4. Before the test, 0 0 1 1 2 3 are known; before the validation, 0 0 1 3.
Interactions small_log() {
  Interactions data;
  data.users = {"a", "b"};
  data.items = {"0", "1", "2", "3", "4"};
  data.events = {0, 1, 2, 4, 3, 0, 1, 4};
  data.offsets = {0, 4, 8};
  return data;
}

template <class Scorer>
std::vector<float> scores_after(const Scorer& scorer, int32_t last) {
  std::vector<float> scores(5);
  const std::vector<int32_t> items = {4, last};
  const History row{items};
  scorer(std::span(&row, 1), {scores.data(), 1, 5});
  return scores;
}

TEST(Popularity, RanksItemsByTheirKnownEvents) {
  const Interactions data = small_log();
  EXPECT_EQ(scores_after(Popularity(data, {}, HeldOut::test), 0), (std::vector<float>{2, 2, 1, 1, 0}));
  EXPECT_EQ(scores_after(Popularity(data, {}, HeldOut::validation), 0), (std::vector<float>{2, 1, 0, 1, 0}));
}

TEST(Markov, RanksItemsByKnownTransitionsThenByPopularity) {
  const Interactions data = small_log();
  const Markov test(data, {}, HeldOut::test);
  EXPECT_EQ(scores_after(test, 0), (std::vector<float>{2, 3, 1, 1, 0}));  // 1 followed 0 twice
  EXPECT_EQ(scores_after(test, 1), (std::vector<float>{2, 2, 3, 1, 0}));
  EXPECT_EQ(scores_after(test, 4), (std::vector<float>{2, 2, 1, 1, 0}));  // nothing followed 4
  EXPECT_EQ(scores_after(Markov(data, {}, HeldOut::validation), 1), (std::vector<float>{2, 1, 0, 1, 0}));
}

TEST(Markov, EqualCountsAndPopularityAreTied) {
  Interactions data;
  data.users = {"a", "b", "c"};
  data.items = {"0", "1", "2", "3", "4"};
  data.events = {0, 1, 4, 4, 0, 2, 4, 4, 0, 3, 3, 4};
  data.offsets = {0, 4, 8, 12};
  const std::vector<float> scores = scores_after(Markov(data, {}, HeldOut::test), 0);
  EXPECT_EQ(scores[1], scores[2]);  // each came after 0 once, and has one event
  EXPECT_GT(scores[3], scores[1]);  // likewise, with two events
  EXPECT_GT(scores[1], scores[4]);  // never, with two
  EXPECT_GT(scores[0], scores[4]);  // never, with three
}

// Published for this file and protocol: popularity 0.0369 and 0.0180, Markov chain 0.2149 and 0.1260, up to the
// handling of ties.
TEST(Baselines, ReproduceThePublishedFiguresForMovieLens) {
  if (!std::filesystem::exists(kMovieLens)) GTEST_SKIP() << "skipped: ../shared not present";
  ReadReport report;
  const Interactions data = read_interactions({kMovieLens}, {}, report);
  EXPECT_EQ(report.sha256, "b725f3acb3986fe3130bffd1e77a74d182a1f51799567a236dbd60270f95b0a2");
  EXPECT_EQ(data.user_count(), 6040);
  EXPECT_EQ(data.item_count(), 3416);
  EXPECT_EQ(std::ssize(data.events), 999'611);
  const RankingScore popularity = rank_targets(data, {}, Popularity(data, {}, HeldOut::test)),
                     markov = rank_targets(data, {}, Markov(data, {}, HeldOut::test));
  EXPECT_NEAR(popularity.hr[1], 0.0369, 0.002);
  EXPECT_NEAR(popularity.ndcg[1], 0.0180, 0.002);
  EXPECT_NEAR(markov.hr[1], 0.2149, 0.002);
  EXPECT_NEAR(markov.ndcg[1], 0.1260, 0.002);
}

}  // namespace
}  // namespace qkv
