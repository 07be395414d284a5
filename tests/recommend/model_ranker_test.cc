// Ranking block by block agrees with ranking by the scores of all items.
#include "recommend/model_ranker.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "core/to_size.h"
#include "recommend/item_scores.h"
#include "tests/support/kernels.h"
#include "tests/support/logs.h"
#include "tests/support/recommenders.h"

namespace qkv {
namespace {

constexpr int64_t kRankedItems = 150, kUsers = 500;  // more users than one batch

Interactions random_log() {
  std::vector<std::vector<int32_t>> users(kUsers);
  Random random(3, Stream::test);
  for (std::vector<int32_t>& events : users)
    for (uint64_t n = 1 + random.below(15); n > 0; n--)
      events.push_back(static_cast<int32_t>(random.below(kRankedItems)));
  return testing::log_of(users, kRankedItems);
}

struct Found {
  std::vector<std::pair<std::string, double>> measures;
  std::vector<std::vector<ScoredToken>> lists;
};

Found rank(const Interactions& data, RankingOptions options, ItemRanker& ranker) {
  Found found;
  const auto add = [&](int64_t, std::span<const ScoredToken> list) {
    found.lists.emplace_back(list.begin(), list.end());
  };
  options.on_list = add;
  found.measures = named_measures(rank_targets(data, options, ranker));
  return found;
}

// An addition to every third item that depends on the history.
constexpr auto add_scores = [](const History& history, std::vector<ScoredToken>& added) {
  for (int32_t item = history.items.back() % 3; item < kRankedItems; item += 3)
    added.push_back({0.5f * static_cast<float>(item % 7), item});
};

TEST(ModelRanker, AgreesWithTheScoresOfAllItems) {
  const Interactions data = random_log();
  Transformer<float> model(testing::item_config(kRankedItems));
  testing::randomize(model.parameters(), 1);
  const std::shared_ptr<const InferenceEngine> engine = make_host_inference(model);
  Arena arena;
  const Negatives negatives = draw_negatives(data, {}, 40, 4);
  Split split;
  split.holdout = 3;
  for (const bool with_added : {false, true}) {
    const auto all_scores = [&](Histories histories, Matrix<float> scores) {
      score_items(*engine, true, histories, scores, arena);
      for (int64_t row = 0; row < scores.rows && with_added; row++) {
        std::vector<ScoredToken> added;
        add_scores(histories[to_size(row)], added);
        for (const auto& [value, item] : added) scores(row, item) += value;
      }
    };
    DenseRanker dense(kRankedItems, all_scores);
    ModelRanker::AddedScores added;
    if (with_added) added = add_scores;
    ModelRanker blocks(*engine, true, arena, added);
    for (const Negatives* drawn : {static_cast<const Negatives*>(nullptr), &negatives}) {
      const RankingOptions options{.split = split, .negatives = drawn, .next = 2};
      const Found expected = rank(data, options, dense);
      for (const int threads : {1, 3}) {
        const Found found = testing::with_threads(threads, [&] { return rank(data, options, blocks); });
        EXPECT_EQ(found.measures, expected.measures);
        ASSERT_EQ(found.lists.size(), expected.lists.size());
        for (size_t user = 0; user < found.lists.size(); user++)
          EXPECT_TRUE(
              std::ranges::equal(found.lists[user], expected.lists[user], {}, &ScoredToken::token, &ScoredToken::token))
              << user;
      }
      EXPECT_GT(expected.measures[2].second, 0);
    }
  }
}

TEST(ModelRanker, NanCountsAgainstTheModel) {
  const Interactions data = random_log();
  Transformer<float> model(testing::item_config(kRankedItems));
  testing::randomize(model.parameters(), 1);
  std::ranges::fill(model.parameters().values(), std::numeric_limits<float>::quiet_NaN());
  const std::shared_ptr<const InferenceEngine> engine = make_host_inference(model);
  Arena arena;
  ModelRanker ranker(*engine, true, arena);
  const Found found = rank(data, {}, ranker);
  EXPECT_EQ(found.measures[2].second, 0);
  for (const auto& list : found.lists) EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace qkv
