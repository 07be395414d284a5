// The figures of an evaluation are those of the lists that a recommender returns.
#include "qkv/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "core/to_size.h"
#include "qkv/text.h"
#include "tests/support/errors.h"
#include "tests/support/logs.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

constexpr int64_t kFewItems = 60, kFewUsers = 80;

// Users with 3 to 14 events, who often take again what they had.
Interactions log_with_repetitions() {
  Random random(5, Stream::test);
  std::vector<std::vector<int32_t>> users(kFewUsers);
  for (std::vector<int32_t>& events : users)
    for (uint64_t n = 3 + random.below(12); n > 0; n--)
      events.push_back(!events.empty() && random.below(3) == 0
                           ? events[random.below(events.size())]
                           : static_cast<int32_t>(random.below(to_size(kFewItems))));
  return testing::log_of(users, kFewItems);
}

struct Measured {
  double hr = 0, ndcg = 0;
};

// Returns the means at cutoff 10 of the lists that the recommender returns, computed from the names of items alone.
Measured measure_lists(const Recommender& recommender, const Interactions& log, size_t from_end) {
  Measured sum;
  for (int64_t user = 0; user < log.user_count(); user++) {
    const std::span<const int32_t> events = log.of(user);
    std::vector<std::string> history;
    for (const int32_t item : events.first(events.size() - from_end)) history.push_back(log.items[to_size(item)]);
    const std::string& target = log.items[to_size(events[events.size() - from_end])];
    const Recommendations list = recommender.recommend(history, {.top = 10});
    for (size_t i = 0; i < list.items.size(); i++)
      if (list.items[i].item == target) sum.hr += 1, sum.ndcg += 1 / std::log2(2 + static_cast<double>(i));
  }
  return {sum.hr / static_cast<double>(log.user_count()), sum.ndcg / static_cast<double>(log.user_count())};
}

const RankingScore& model_of(const RankingTable& table) { return table.rows.front().score; }

class EvaluateTest : public ::testing::Test {
 protected:
  testing::TempDir directory;
  std::string run = directory / "run";
  const Interactions log = log_with_repetitions();
};

TEST_F(EvaluateTest, FiguresAreThoseOfTheListsThatARecommenderReturns) {
  int number = 0;
  for (const bool repeats : {false, true})
    for (const bool transitions : {false, true}) {
      const std::string name = directory / std::to_string(number++);
      testing::create_recommender(
          name, log, true, repeats,
          transitions ? std::optional(TransitionConfig{.weight = 2, .events = 6}) : std::nullopt);
      for (const char* before : {"test", "validation"}) {
        const bool validation = before == std::string("validation");
        RankingProtocol protocol;
        protocol.validation = validation;
        const RankingTable table = evaluate_run(name, protocol);
        const Measured lists = measure_lists(Recommender(name, {.before = before}), log, validation ? 2 : 1);
        EXPECT_NEAR(model_of(table).hr[1], lists.hr, 1e-12) << repeats << transitions << before;
        EXPECT_NEAR(model_of(table).ndcg[1], lists.ndcg, 1e-12) << repeats << transitions << before;
        EXPECT_GT(lists.hr, 0.05);
        EXPECT_EQ(model_of(table).repeated > kFewUsers / 5, !repeats);
      }
    }
}

TEST_F(EvaluateTest, AllRowsCountTargetsInTheHistoryAsMisses) {
  testing::create_recommender(run, log, true, false, TransitionConfig{.weight = 2, .events = 6});
  for (const char* name : {"full", "sampled-20"}) {
    const RankingTable table = evaluate_run(run, RankingProtocol::named(name));
    const int64_t repeated = model_of(table).repeated;
    EXPECT_GT(repeated, 10);
    ASSERT_EQ(table.rows.size(), 5u);
    for (const RankingTable::Row& row : table.rows) {
      EXPECT_EQ(row.score.repeated, repeated) << row.name;
      EXPECT_LE(row.score.hr[2], 1 - static_cast<double>(repeated) / kFewUsers) << row.name;
    }
    testing::expect_contains(to_json(table), fmt::format("\"targets_in_history\":{}", repeated));
  }
}

TEST_F(EvaluateTest, WithoutBeforeTheTransitionsOfTheTestAreCounted) {
  testing::create_recommender(run, log, true, false, TransitionConfig{.weight = 100, .events = 6});
  const Measured known = measure_lists(Recommender(run), log, 1),
                 before = measure_lists(Recommender(run, {.before = "test"}), log, 1);
  EXPECT_GT(known.hr, 2 * before.hr);
  const Recommender earlier(run, {.before = "validation"});
  EXPECT_EQ(earlier.items(), log.items);
  EXPECT_EQ(earlier.history("u0").size(), log.of(0).size() - 2);
  testing::expect_contains(testing::error_of([&] { Recommender(run, {.before = "tests"}); }),
                           "before must be test or validation (is \"tests\")");
}

}  // namespace
}  // namespace qkv
