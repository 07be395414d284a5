// Counted transitions: the scores against a plain reference, and what they depend on.
#include "data/log/transitions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/support/kernels.h"

namespace qkv {
namespace {

constexpr int64_t kItemCount = 30;

Interactions random_log(int64_t users, int64_t items = kItemCount) {
  std::mt19937 random(7);
  Interactions log;
  for (int64_t i = 0; i < items; i++) log.items.push_back(std::to_string(i));
  for (int64_t user = 0; user < users; user++) {
    log.users.push_back(std::to_string(user));
    const size_t count = 1 + random() % 25;
    for (size_t i = 0; i < count; i++) log.events.push_back(static_cast<int32_t>(random() % to_size(items)));
    log.offsets.push_back(std::ssize(log.events));
  }
  return log;
}

Transitions count_all(const Interactions& log, const TransitionConfig& config) {
  return {log, [&](int64_t user) { return std::ssize(log.of(user)); }, config};
}

std::vector<float> dense(const Transitions& transitions, const std::vector<int32_t>& history) {
  std::vector<float> scores(to_size(transitions.items()));
  transitions.add(history, scores);
  return scores;
}

// The formula of docs/math.md, term by term.
std::vector<double> reference(const Interactions& log, const TransitionConfig& c, const std::vector<int32_t>& history) {
  std::map<std::pair<int32_t, int32_t>, double> counts;
  for (int64_t user = 0; user < log.user_count(); user++)
    for (size_t i = 0; i < log.of(user).size(); i++)
      for (size_t j = i + 1; j < log.of(user).size() && j <= i + to_size(c.distance); j++)
        counts[{log.of(user)[i], log.of(user)[j]}] += std::pow(static_cast<double>(j - i), -c.power);
  const size_t events = std::min(history.size(), to_size(c.events));
  double sum = 0;
  for (size_t j = 0; j < events; j++) sum += std::pow(c.decay, static_cast<double>(j));
  std::vector<double> scores(log.items.size());
  for (size_t j = 0; j < events; j++)
    for (size_t y = 0; y < scores.size(); y++)
      scores[y] += c.weight * std::pow(c.decay, static_cast<double>(j)) / sum *
                   std::log1p(c.scale * counts[{history[history.size() - 1 - j], static_cast<int32_t>(y)}]);
  return scores;
}

TEST(Transitions, ScoresFollowTheFormula) {
  const Interactions log = random_log(20);
  for (const TransitionConfig& config :
       {TransitionConfig{.weight = 1}, TransitionConfig{.weight = 2.5, .decay = 0.3, .scale = 10, .events = 3},
        TransitionConfig{.weight = 1, .decay = 1, .events = 50, .distance = 1},
        TransitionConfig{.weight = 0.5, .distance = 30, .power = 2}, TransitionConfig{.weight = 1, .power = 0}}) {
    const Transitions transitions = count_all(log, config);
    for (const std::vector<int32_t>& history :
         {std::vector<int32_t>{4}, {1, 2, 3, 4}, {7, 7, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}}) {
      const std::vector<float> scores = dense(transitions, history);
      const std::vector<double> wanted = reference(log, config, history);
      for (size_t item = 0; item < scores.size(); item++) EXPECT_NEAR(scores[item], wanted[item], 1e-5);
    }
  }
}

TEST(Transitions, ListedScoresAreTheAddedOnes) {
  const Transitions transitions = count_all(random_log(10), {.weight = 1.5});
  for (int32_t item = 0; item < kItemCount; item++) {
    const std::vector<int32_t> history = {3, item, 5, item, item};
    std::vector<float> listed(kItemCount);
    int32_t last = -1;
    for (const auto& [next, score] : transitions.scores(history)) {
      EXPECT_GT(next, last);
      EXPECT_GT(score, 0);
      listed[to_size(last = next)] = score;
    }
    EXPECT_EQ(listed, dense(transitions, history));
  }
}

TEST(Transitions, OnlyCountedEventsMatter) {
  const Interactions log = random_log(20);
  Interactions changed = log;
  const auto counted = [&](int64_t user) { return std::ssize(log.of(user)) / 2; };
  for (int64_t user = 0; user < log.user_count(); user++)
    for (int64_t i = log.offsets[to_size(user)] + counted(user); i < log.offsets[to_size(user) + 1]; i++)
      changed.events[to_size(i)] = (changed.events[to_size(i)] + 1) % static_cast<int32_t>(kItemCount);
  const Transitions before(log, counted, {.weight = 1}), after(changed, counted, {.weight = 1});
  for (int32_t item = 0; item < kItemCount; item++) EXPECT_EQ(dense(before, {item}), dense(after, {item}));
  EXPECT_LT(before.pairs(), count_all(log, {}).pairs());
}

TEST(Transitions, KeepTheLargestCounts) {
  const Interactions log = random_log(40);
  const Transitions all = count_all(log, {.weight = 1}), some = count_all(log, {.weight = 1, .kept = 4});
  EXPECT_EQ(some.pairs(), 4 * kItemCount);
  for (int32_t item = 0; item < kItemCount; item++) {
    std::vector<float> scores = dense(all, {item}), kept = dense(some, {item});
    std::ranges::sort(scores, std::greater());
    std::ranges::sort(kept, std::greater());
    EXPECT_TRUE(std::equal(kept.begin(), kept.begin() + 4, scores.begin()));
    EXPECT_EQ(kept[4], 0);
  }
}

TEST(Transitions, ShapeAndWeightCanChangeAfterCounting) {
  const Interactions log = random_log(20);
  Transitions transitions = count_all(log, {.weight = 1});
  transitions.set_shape(0.4, 7);
  transitions.set_weight(3);
  EXPECT_EQ(dense(transitions, {1, 2, 3}), dense(count_all(log, {.weight = 3, .decay = 0.4, .scale = 7}), {1, 2, 3}));
}

TEST(Transitions, DoNotDependOnTheThreads) {
  const Interactions log = random_log(200, 150);
  const auto scores = [&](int threads) {
    return testing::with_threads(threads, [&] {
      return dense(count_all(log, {.weight = 1, .kept = 9}), {5, 90, 149});
    });
  };
  EXPECT_EQ(scores(1), scores(4));
}

TEST(Transitions, AnItemWithoutSuccessorsAddsNothing) {
  Interactions log = random_log(3);
  log.items.push_back("new");
  const Transitions transitions = count_all(log, {.weight = 1});
  EXPECT_TRUE(transitions.scores(std::vector{static_cast<int32_t>(kItemCount)}).empty());
  EXPECT_TRUE(transitions.scores({}).empty());
}

TEST(Transitions, FewerSuccessorsAreKeptIfThereAreMoreItems) {
  EXPECT_EQ(kept_successors(1), 4096);
  EXPECT_EQ(kept_successors(1'000'000), 67);
  EXPECT_EQ(kept_successors(100'000'000), 8);
}

}  // namespace
}  // namespace qkv
