// The fit of transitions: its measures against those of a full ranking, and the weights it chooses.
#include "eval/transition_fit.h"

#include <gtest/gtest.h>

#include <random>

#include "eval/baselines.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/kernels.h"
#include "tests/support/logs.h"

namespace qkv {
namespace {

constexpr int32_t kItems = 60;

// Users who mostly go from item i to i + 1, and sometimes to a random item.
Interactions walks(double noise) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform;
  Interactions log;
  for (int32_t i = 0; i < kItems; i++) log.items.push_back(std::to_string(i));
  for (int user = 0; user < 150; user++) {
    log.users.push_back(std::to_string(user));
    auto item = static_cast<int32_t>(random() % kItems);
    for (size_t i = 0; i < 3 + random() % 6; i++) {
      log.events.push_back(item);
      item = static_cast<int32_t>(uniform(random) < noise ? random() % kItems : static_cast<size_t>(item) + 1) % kItems;
    }
    log.offsets.push_back(std::ssize(log.events));
  }
  return log;
}

// Scores that depend on the item and the last event only, without a meaning.
const auto arbitrary = [](std::span<const History> histories, Matrix<float> scores) {
  for (int64_t row = 0; row < scores.rows; row++)
    for (int32_t item = 0; item < kItems; item++)
      scores(row, item) = static_cast<float>((item * 37 + histories[to_size(row)].items.back() * 11) % 53) / 26;
};

TEST(TransitionFit, MeasuresAreThoseOfAFullRanking) {
  const Interactions log = walks(0.3);
  for (const bool repeats : {false, true}) {
    Transitions transitions = count_transitions(log, {}, HeldOut::validation, {.weight = 1});
    const TransitionFit fit = fit_weight(log, {}, repeats, transitions, arbitrary);
    EXPECT_GT(fit.weight, 0);
    const RankingOptions options{.part = HeldOut::validation, .repeats = repeats};
    const RankingScore without = rank_targets(log, options, arbitrary);
    EXPECT_NEAR(fit.without.ndcg, without.ndcg[1], 1e-12);
    EXPECT_NEAR(fit.without.hr, without.hr[1], 1e-12);
    EXPECT_NEAR(fit.without.mrr, without.mrr[1], 1e-12);
    transitions.set_weight(fit.weight);
    const RankingScore with = rank_targets(log, options, [&](std::span<const History> histories, Matrix<float> scores) {
      arbitrary(histories, scores);
      for (int64_t row = 0; row < scores.rows; row++)
        transitions.add(histories[to_size(row)].items, {scores.row(row), kItems});
    });
    EXPECT_NEAR(fit.with.ndcg, with.ndcg[1], 1e-3);  // a tie may fall differently
    EXPECT_GT(fit.with.ndcg, fit.without.ndcg + 0.1);
  }
}

TEST(TransitionFit, TargetsInTheHistoryAreMisses) {
  const Interactions log = testing::log_of({{0, 1, 0, 2}, {0, 1, 3, 2}}, kItems);
  Transitions transitions = count_transitions(log, {}, HeldOut::validation, {.weight = 1});
  const auto best = [](std::span<const History> histories, Matrix<float> scores) {  // 0, then 3
    std::fill_n(scores.data, scores.rows * scores.cols, 0.0f);
    for (size_t row = 0; row < histories.size(); row++)
      scores(static_cast<int64_t>(row), 0) = 2, scores(static_cast<int64_t>(row), 3) = 1;
  };
  EXPECT_EQ(fit_weight(log, {}, false, transitions, best).without.hr, 0.5);
  EXPECT_EQ(fit_weight(log, {}, true, transitions, best).without.hr, 1);
  EXPECT_EQ(fit_weight(log, {}, false, transitions, best).without.ndcg, 0.5);
}

TEST(TransitionFit, AModelThatKnowsTheAnswerGetsWeight0) {
  const Interactions log = walks(0);  // without repetitions
  const Transitions transitions = count_transitions(log, {}, HeldOut::validation, {.weight = 1});
  const auto knows = [&](std::span<const History> histories, Matrix<float> scores) {
    for (int64_t row = 0; row < scores.rows; row++) {
      const std::span<const int32_t> items = histories[to_size(row)].items;
      std::fill_n(scores.row(row), kItems, 0.0f);
      scores(row, items.data()[items.size()]) = 1;  // the event after the history, in the log
    }
  };
  const TransitionFit fit = fit_weight(log, {}, false, transitions, knows);
  EXPECT_EQ(fit.weight, 0);
  EXPECT_EQ(fit.with.ndcg, fit.without.ndcg);
  EXPECT_EQ(fit.with.ndcg, 1);
}

TEST(TransitionFit, TheShapeIsTheBestOnTheValidation) {
  const Interactions log = walks(0.4);
  Transitions transitions = count_transitions(log, {}, HeldOut::validation, {.decay = 1, .scale = 100});
  const auto score = [&] {
    return rank_targets(log, {.part = HeldOut::validation},
                        TransitionsAlone(log, {}, HeldOut::validation, transitions.config()))
        .ndcg[1];
  };
  const double before = score();
  fit_shape(log, {}, false, transitions);
  EXPECT_LT(transitions.config().decay, 1);  // only the last item matters in these walks
  EXPECT_EQ(transitions.config().weight, 0);
  EXPECT_GT(score(), before);
}

TEST(TransitionFit, DoesNotDependOnTheThreads) {
  const Interactions log = walks(0.3);
  const auto fit = [&](int threads) {
    return testing::with_threads(threads, [&] {
      Transitions transitions = count_transitions(log, {}, HeldOut::validation, {.weight = 1});
      fit_shape(log, {}, false, transitions);
      const TransitionFit found = fit_weight(log, {}, false, transitions, arbitrary);
      return std::tuple(transitions.config().decay, transitions.config().scale, found.weight, found.with.ndcg);
    });
  };
  EXPECT_EQ(fit(1), fit(3));
}

TEST(TransitionFit, DoesNotDependOnTheRanks) {
  const Interactions log = walks(0.3);
  const auto fit = [&](const RankPartition& partition) {
    const Transitions transitions = count_transitions(log, {}, HeldOut::validation, {.weight = 1});
    const TransitionFit found = fit_weight(log, {}, false, transitions, arbitrary, partition);
    return std::tuple(found.weight, found.with.ndcg, found.with.mrr, found.without.ndcg, found.without.hr);
  };
  const auto compare = [&](Communicator& communicator) {
    const bool same = fit(RankPartition(communicator)) == fit({});
    communicator.leave();
    return same;
  };
  for (const int ranks : {2, 3}) EXPECT_EQ(testing::failures_on_ranks(ranks, compare), 0) << ranks;
}

TEST(TransitionsAlone, ItemsWithoutTransitionsFollowByPopularity) {
  Interactions log;
  log.users = {"a", "b"};
  log.items = {"0", "1", "2", "3", "4"};
  log.events = {0, 1, 2, 4, 3, 0, 1, 4};  // before the test: 0 1 2 and 3 0 1
  log.offsets = {0, 4, 8};
  std::vector<float> scores(5);
  const std::vector<int32_t> items = {4, 3};
  const History row{items};
  TransitionsAlone(log, {}, HeldOut::test, {})(std::span(&row, 1), {scores.data(), 1, 5});
  EXPECT_GT(scores[0], scores[1]);  // at distance 1 and 2 after 3
  EXPECT_GT(scores[1], 0);
  EXPECT_GT(0, scores[2]);
  EXPECT_EQ(scores[2], scores[3]);  // one event each
  EXPECT_GT(scores[3], scores[4]);
}

}  // namespace
}  // namespace qkv
