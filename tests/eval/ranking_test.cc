// Ranks, metrics and protocols against loops that follow their definitions, and with hostile scores.
#include "eval/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/random.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "eval/baselines.h"
#include "eval/rankers.h"
#include "tests/support/errors.h"
#include "tests/support/logs.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::log_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

// The same scores for every user.
auto constant(const std::vector<float>& scores) {
  return [scores](std::span<const History>, Matrix<float> to) {
    for (int64_t row = 0; row < to.rows; row++) std::ranges::copy(scores, to.row(row));
  };
}

// Returns the rank of the target, derived from MRR@20, for one user with the history 1, 2 and the target 0.
int64_t rank_of_item_0(const std::vector<float>& scores, const Negatives* negatives = nullptr) {
  const Interactions data = log_of({{1, 2, 0}}, static_cast<int>(scores.size()));
  const RankingScore score = rank_targets(data, {.negatives = negatives}, constant(scores));
  return score.mrr[2] == 0 ? 21 : std::lround(1 / score.mrr[2]);
}

TEST(Ranking, TiesAndNanCountAgainstTheTarget) {
  EXPECT_EQ(rank_of_item_0({5, 9, 9, 1, 2, 3}), 1);  // items 1 and 2 are in the history
  EXPECT_EQ(rank_of_item_0({5, 9, 9, 6, 2, 3}), 2);
  EXPECT_EQ(rank_of_item_0({5, 9, 9, 5, 5, 3}), 3);
  EXPECT_EQ(rank_of_item_0({0, 0, 0, 0, 0, 0}), 4);
  EXPECT_EQ(rank_of_item_0({5, 9, 9, kNan, 2, 3}), 2);
  EXPECT_EQ(rank_of_item_0({kNan, 9, 9, 1, 2, 3}), 4);
  EXPECT_EQ(rank_of_item_0({kNan, kNan, kNan, kNan, kNan, kNan}), 4);
  EXPECT_EQ(rank_of_item_0({-kInfinity, 0, 0, -kInfinity, 1, kInfinity}), 4);
  EXPECT_EQ(rank_of_item_0({kInfinity, kInfinity, kNan, 0, 0, 0}), 1);
}

TEST(Ranking, ATargetInTheHistoryIsAMissUnlessItMayRepeat) {
  const Interactions data = log_of({{0, 1, 2, 0}, {1, 2, 3}}, 4);
  const Negatives negatives{1, {3, 0}};
  for (const Negatives* drawn : {static_cast<const Negatives*>(nullptr), &negatives}) {
    const RankingScore score = rank_targets(data, {.negatives = drawn}, constant({3, 9, 9, 4}));
    EXPECT_EQ(score.mrr[0], 1 / 2.0);  // of user 1
    EXPECT_EQ(score.hr[2], 1 / 2.0);
    EXPECT_EQ(score.users, 2);
    EXPECT_EQ(score.repeated, 1);
  }
  const RankingScore repeats = rank_targets(data, {.repeats = true}, constant({9, 1, 1, 8}));
  EXPECT_EQ(repeats.mrr[0], (1 + 1 / 2.0) / 2);
  EXPECT_EQ(repeats.repeated, 0);
}

TEST(Ranking, OfSeveralTargetsThoseInTheHistoryAreMisses) {
  const Interactions data = log_of({{5, 0, 1, 2, 0, 3, 4}}, 8);
  Split split;
  split.holdout = 3;
  const RankingScore score = rank_targets(data, {.split = split, .next = 3}, constant({9, 1, 1, 7, 6, 9, 6.5, 0}));
  EXPECT_EQ(score.repeated, 1);  // of 0, 3, 4
  EXPECT_DOUBLE_EQ(score.recall[0], 2 / 3.0);
  EXPECT_DOUBLE_EQ(score.map[0], (1 + 2 / 3.0) / 3);  // 3 is first, 6 is above 4
  EXPECT_DOUBLE_EQ(score.precision[0], 2 / 5.0);
}

TEST(Ranking, WithRepeatsTheHistoryIsRanked) {
  const Interactions data = log_of({{1, 2, 0}}, 4);
  EXPECT_DOUBLE_EQ(rank_targets(data, {}, constant({5, 9, 9, 1})).mrr[0], 1);
  EXPECT_DOUBLE_EQ(rank_targets(data, {.repeats = true}, constant({5, 9, 3, 1})).mrr[0], 1 / 2.0);
  EXPECT_DOUBLE_EQ(rank_targets(data, {.repeats = true}, constant({5, 9, 5, 1})).mrr[0], 1 / 3.0);
}

TEST(Ranking, DrawnItemsCountEachTimeTheyAreDrawn) {
  const Negatives negatives{4, {3, 3, 5, 0}};
  EXPECT_EQ(rank_of_item_0({5, 9, 9, 6, 9, 1}, &negatives), 4);  // 3 twice, and 0 itself
  EXPECT_EQ(rank_of_item_0({kNan, 0, 0, 0, 0, 0}, &negatives), 5);
}

TEST(Ranking, MetricsFollowFromTheRanks) {
  // The target of user u has rank u + 1: item u + 1 of 30 with decreasing scores.
  std::vector<std::vector<int32_t>> users;
  std::vector<float> scores;
  for (int32_t u = 0; u < 25; u++) users.push_back({0, 0, u + 1});
  for (int i = 0; i < 30; i++) scores.push_back(static_cast<float>(-i));
  const RankingScore found = rank_targets(log_of(users, 30), {}, constant(scores));
  for (size_t i = 0; i < kCutoffs.size(); i++) {
    double ndcg = 0, mrr = 0;
    for (int64_t r = 1; r <= kCutoffs[i]; r++) {
      ndcg += std::log(2) / std::log(1 + static_cast<double>(r)) / 25;
      mrr += 1 / static_cast<double>(r) / 25;
    }
    EXPECT_DOUBLE_EQ(found.hr[i], static_cast<double>(kCutoffs[i]) / 25);
    EXPECT_NEAR(found.ndcg[i], ndcg, 1e-14);  // some 60 roundings of numbers up to 1
    EXPECT_NEAR(found.mrr[i], mrr, 1e-14);
  }
  EXPECT_EQ(found.users, 25);
  EXPECT_DOUBLE_EQ(found.coverage[1], 10. / 30);  // items 1 … 10, for every user
}

TEST(Ranking, CoverageExcludesTheHistory) {
  const Interactions data = log_of({{0, 1, 2}, {3, 4, 5}}, 12);
  const std::vector<float> falling = {12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(rank_targets(data, {}, constant(falling)).coverage[1], 1);  // 2 … 11, and 0, 1, 2, 5, 6, … 11
  const std::vector<float> none(12, kNan);
  EXPECT_DOUBLE_EQ(rank_targets(data, {}, constant(none)).coverage[1], 0);
}

TEST(Ranking, UsersWithoutATargetOrAHistoryAreCounted) {
  Interactions data = log_of({{0, 1, 2}, {0, 1}, {1}, {}}, 3);
  const RankingScore left_out = rank_targets(data, {}, constant({1, 2, 3}));
  EXPECT_EQ(left_out.users, 1);
  EXPECT_EQ(left_out.no_target, 3);
  data.times = {1, 2, 9, 1, 2, 9};
  const RankingScore temporal = rank_targets(data, {.split = {SplitRule::temporal, 5, 5}}, constant({1, 2, 3}));
  EXPECT_EQ(temporal.users, 1);
  EXPECT_EQ(temporal.no_target, 2);
  EXPECT_EQ(temporal.no_history, 1);
  testing::expect_contains(testing::error_of([&] {
                             rank_targets(log_of({{0, 1}}, 2), {}, constant({1, 2}));
                           }),
                           "no user has a target");
}

Interactions random_log(int users, int items) {
  Random random(11, Stream::test);
  std::vector<std::vector<int32_t>> events(to_size(users));
  for (std::vector<int32_t>& user : events)
    for (uint64_t n = 3 + random.below(20); n > 0; n--)
      user.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(items))));
  return log_of(events, items);
}

TEST(Ranking, HistoriesAreTheEventsBeforeTheTarget) {
  Interactions data = random_log(700, 50);  // more than one batch
  data.times.resize(data.events.size());
  std::iota(data.times.begin(), data.times.end(), 0);
  for (const HeldOut part : {HeldOut::validation, HeldOut::test}) {
    int64_t user = 0;
    rank_targets(data, {.part = part}, [&](std::span<const History> histories, Matrix<float> scores) {
      ASSERT_EQ(std::ssize(histories), scores.rows);
      ASSERT_EQ(scores.cols, 50);
      for (const History& history : histories) {
        const History all = data.history(user++),
                      expected = all.first(all.items.size() - (part == HeldOut::test ? 1 : 2));
        EXPECT_TRUE(std::ranges::equal(history.items, expected.items));
        EXPECT_TRUE(std::ranges::equal(history.times, expected.times));
        EXPECT_EQ(history.times.size(), history.items.size());
      }
      std::fill_n(scores.data, scores.rows * scores.cols, 0.f);
    });
    EXPECT_EQ(user, 700);
  }
}

// Scores that depend only on the history, with many ties.
constexpr auto score_by_history = [](std::span<const History> histories, Matrix<float> scores) {
  for (int64_t row = 0; row < scores.rows; row++) {
    uint64_t seed = 0;
    for (const int32_t item : histories[to_size(row)].items) seed = 31 * seed + static_cast<uint64_t>(item);
    Random random(seed, Stream::test);
    for (int64_t i = 0; i < scores.cols; i++) scores(row, i) = static_cast<float>(random.below(40));
  }
};

TEST(Ranking, AgreesWithTheDefinitionForAnyNumberOfThreads) {
  const Interactions data = random_log(600, 80);
  const Negatives negatives = draw_negatives(data, {}, 30, 4);
  for (const Negatives* drawn : {static_cast<const Negatives*>(nullptr), &negatives}) {
    double hr = 0, ndcg = 0, mrr = 0;
    for (int64_t user = 0; user < data.user_count(); user++) {
      const std::span<const int32_t> events = data.of(user), history = events.first(events.size() - 1);
      std::vector<float> scores(80);
      const History only{history};
      score_by_history(std::span(&only, 1), {scores.data(), 1, 80});
      std::vector<int32_t> candidates;
      if (drawn)
        candidates.assign(drawn->of(user).begin(), drawn->of(user).end());
      else
        for (int32_t i = 0; i < 80; i++)
          if (i != events.back() && std::ranges::find(history, i) == history.end()) candidates.push_back(i);
      const float own = scores[to_size(events.back())];
      const auto rank = 1. + static_cast<double>(std::ranges::count_if(
                                 candidates, [&](int32_t i) { return scores[to_size(i)] >= own; }));
      if (std::ranges::find(history, events.back()) != history.end()) continue;  // not recommended again
      if (rank <= 10) hr += 1, ndcg += 1 / std::log2(1 + rank), mrr += 1 / rank;
    }
    const int before = threads();
    for (const int n : {1, 3}) {
      set_threads(n);
      const RankingScore found = rank_targets(data, {.negatives = drawn}, score_by_history);
      EXPECT_EQ(found.hr[1], hr / 600);
      EXPECT_EQ(found.ndcg[1], ndcg / 600);
      EXPECT_EQ(found.mrr[1], mrr / 600);
    }
    set_threads(before);
  }
}

// Returns the ranks of distinct targets by sorting: of equal scores the targets come last.
std::vector<int64_t> ranks_by_sorting(const std::vector<float>& scores, const std::set<int32_t>& targets,
                                      std::vector<int32_t> others) {
  std::erase_if(others, [&](int32_t item) { return targets.contains(item); });
  std::vector<std::pair<float, bool>> all;  // best first: larger scores, then items that are no targets
  for (const int32_t item : others) all.emplace_back(-scores[to_size(item)], false);
  for (const int32_t item : targets) all.emplace_back(-scores[to_size(item)], true);
  std::ranges::sort(all);
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < all.size(); i++)
    if (all[i].second) ranks.push_back(static_cast<int64_t>(i) + 1);
  return ranks;
}

TEST(Ranking, SeveralTargetsAgreeWithTheDefinition) {
  const Interactions data = random_log(300, 80);
  Split split;
  split.holdout = 4;
  for (const int64_t next : {2, 4, 9}) {
    double recall = 0, map = 0;
    int64_t users = 0;
    for (int64_t user = 0; user < data.user_count(); user++) {
      const std::span<const int32_t> events = data.of(user);
      if (events.size() < 9) continue;
      users++;
      const auto history = events.first(events.size() - 4),
                 held_out = events.subspan(history.size(), to_size(std::min<int64_t>(4, next)));
      std::vector<float> scores(80);
      const History only{history};
      score_by_history(std::span(&only, 1), {scores.data(), 1, 80});
      const std::set<int32_t> targets(held_out.begin(), held_out.end());
      std::vector<int32_t> others;
      for (int32_t i = 0; i < 80; i++)
        if (std::ranges::find(history, i) == history.end()) others.push_back(i);
      double hits = 0;
      std::set<int32_t> ranked = targets;  // those in the history have no rank
      std::erase_if(ranked, [&](int32_t item) { return std::ranges::find(history, item) != history.end(); });
      for (const int64_t rank : ranks_by_sorting(scores, ranked, others)) {
        if (rank > 10) break;
        hits++;
        recall += 1 / static_cast<double>(targets.size());
        map += hits / static_cast<double>(rank) / static_cast<double>(targets.size());
      }
    }
    const RankingScore found = rank_targets(data, {.split = split, .next = next}, score_by_history);
    EXPECT_EQ(found.users, users);
    EXPECT_NEAR(found.recall[1], recall / static_cast<double>(users), 1e-12);
    EXPECT_NEAR(found.map[1], map / static_cast<double>(users), 1e-12);
    EXPECT_GT(found.recall[1], 0);
  }
}

TEST(Ranking, ASampleOfUsersDependsOnTheirNames) {
  const Interactions data = random_log(300, 80);
  std::vector<int64_t> sample, smaller, all;
  const auto users = [&](int64_t most, std::vector<int64_t>& to) {
    const auto add = [&](int64_t user, std::span<const ScoredToken>) { to.push_back(user); };
    return rank_targets(data, {.most_users = most, .on_list = add}, score_by_history);
  };
  const RankingScore score = users(50, sample);
  EXPECT_EQ(score.users, 50);
  EXPECT_EQ(score.not_sampled, 250);
  EXPECT_EQ(users(20, smaller).users, 20);
  EXPECT_EQ(users(300, all).not_sampled, 0);
  EXPECT_EQ(sample.size(), 50u);
  EXPECT_TRUE(std::ranges::is_sorted(sample));
  EXPECT_TRUE(std::ranges::includes(sample, smaller));
  EXPECT_LT(sample.front(), 30);  // spread over all users
  EXPECT_GT(sample.back(), 270);
  EXPECT_EQ(users_for(10'000'000, 20'000'000'000), 2000);
  EXPECT_EQ(users_for(10'000'000, 1), 1000);
}

TEST(Ranking, SegmentsAreScoredByThemselves) {
  const Interactions data = random_log(300, 80);
  Segments segments{{"odd", "even", "none"}, std::vector<int32_t>(300, -1)};
  for (size_t user = 0; user < 200; user++) segments.of_user[user] = user % 2 == 0;
  const ItemCounts counts(data, {}, HeldOut::test);
  DenseRanker ranker(80, score_by_history);
  const SegmentedScore found = rank_segments(data, {.counts = &counts, .segments = &segments}, ranker);
  ASSERT_EQ(found.segments.size(), 3u);
  EXPECT_EQ(found.all.users, 300);
  EXPECT_EQ(found.segments[0].users, 100);
  EXPECT_EQ(found.segments[2].users, 0);
  EXPECT_EQ(found.segments[2].hr[2], 0);

  Interactions odd;
  odd.items = data.items;
  for (int64_t user = 1; user < 200; user += 2) {
    odd.users.push_back(data.users[to_size(user)]);
    odd.events.insert(odd.events.end(), data.of(user).begin(), data.of(user).end());
    odd.offsets.push_back(std::ssize(odd.events));
  }
  const RankingScore alone = rank_targets(odd, {.counts = &counts}, ranker);
  EXPECT_EQ(named_measures(alone), named_measures(found.segments[0]));
  EXPECT_GT(alone.novelty[0], 0);
}

TEST(SparseRanker, AgreesWithTheScoresOfAllItems) {
  const Interactions data = random_log(300, 80);
  Split split;
  split.holdout = 2;
  const Popularity popularity(data, split, HeldOut::test);
  const Markov markov(data, split, HeldOut::test);
  const auto next = [&](const History& history, std::vector<ScoredToken>& changed) {
    markov.append_next(history, changed);
  };
  const Negatives negatives = draw_negatives(data, {}, 30, 4);
  SparseRanker by_popularity(popularity.scores()), by_last_item(markov.popularity().scores(), next);
  DenseRanker dense_popularity(80, popularity), dense_markov(80, markov);
  const std::pair<ItemRanker*, ItemRanker*> pairs[] = {{&by_popularity, &dense_popularity},
                                                       {&by_last_item, &dense_markov}};
  for (const auto& [sparse, dense] : pairs)
    for (const Negatives* drawn : {static_cast<const Negatives*>(nullptr), &negatives}) {
      std::vector<std::vector<int32_t>> lists[2];
      std::vector<std::pair<std::string, double>> measures[2];
      for (const size_t i : {0, 1}) {
        const auto add = [&](int64_t, std::span<const ScoredToken> list) {
          for (lists[i].emplace_back(); const ScoredToken& item : list) lists[i].back().push_back(item.token);
        };
        const RankingOptions options{.split = split, .negatives = drawn, .next = 2, .on_list = add};
        measures[i] = named_measures(rank_targets(data, options, i == 0 ? *sparse : *dense));
      }
      EXPECT_EQ(measures[0], measures[1]);
      EXPECT_EQ(lists[0], lists[1]);
    }
}

TEST(Negatives, AreDrawnFromTheItemsThatAreNotTrainingItems) {
  const Interactions data = random_log(200, 12);
  const Negatives negatives = draw_negatives(data, {}, 100, 9);
  std::vector<int64_t> counts(12);
  for (int64_t user = 0; user < 200; user++) {
    const std::span<const int32_t> events = data.of(user);
    const std::set<int32_t> train(events.begin(), events.end() - 2);
    const std::set<int32_t> drawn(negatives.of(user).begin(), negatives.of(user).end());
    if (train.size() == 12) {
      EXPECT_EQ(drawn.size(), 12u);  // the user has every item, so all are drawn from
      continue;
    }
    for (const int32_t item : drawn) EXPECT_FALSE(train.contains(item));
    EXPECT_GE(drawn.size() + train.size(), 11u);  // each of at most 11 fails to come 100 times with (10/11)^100 < 8e-5
  }
}

TEST(Negatives, WithRepeatsAreDrawnFromAllItems) {
  const Interactions data = log_of({{0, 1, 2, 3, 4}}, 5);
  const Negatives without = draw_negatives(data, {}, 400, 3), with = draw_negatives(data, {}, 400, 3, true);
  for (int32_t item = 0; item < 5; item++) {
    EXPECT_EQ(std::ranges::count(without.items, item) > 0, item >= 3) << item;
    EXPECT_GT(std::ranges::count(with.items, item), 0) << item;
  }
}

TEST(Negatives, DependOnTheSeedAndNotOnTheNumberOfThreads) {
  const Interactions data = random_log(50, 30);
  const int before = threads();
  set_threads(1);
  const Negatives one = draw_negatives(data, {}, 10, 1);
  set_threads(3);
  EXPECT_EQ(draw_negatives(data, {}, 10, 1).items, one.items);
  set_threads(before);
  EXPECT_NE(draw_negatives(data, {}, 10, 2).items, one.items);
  std::vector<int32_t> few;
  for (int64_t user = 0; user < 50; user++) few.insert(few.end(), one.of(user).begin(), one.of(user).begin() + 5);
  EXPECT_EQ(draw_negatives(data, {}, 5, 1).items, few);  // the first of them
}

TEST(Negatives, AreReadBackFromAFileOfTheSameLog) {
  const testing::TempDir directory;
  const std::string path = directory / "negatives.safetensors";
  const Interactions data = random_log(5, 30);
  const Negatives negatives = draw_negatives(data, {}, 10, 1);
  save_negatives(path, negatives, "sum");
  EXPECT_EQ(load_negatives(path, data, 10, "sum").items, negatives.items);
  const auto error = [&](const Interactions& log, int64_t each, const std::string& sum) {
    return testing::error_of([&] { load_negatives(path, log, each, sum); });
  };
  testing::expect_contains(error(data, 10, "other"), "not the negatives of this log");
  testing::expect_contains(error(data, 11, "sum"), "must be I32 [5, 11] (is I32 [5, 10])");
  testing::expect_contains(error(random_log(6, 30), 10, "sum"), "must be I32 [6, 10] (is I32 [5, 10])");
  testing::expect_contains(error(random_log(5, 10), 10, "sum"), "item must be between 0 and 9");
}

}  // namespace
}  // namespace qkv
