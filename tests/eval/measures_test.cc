// Measures of lists and targets against figures of RecTools, and by hand.
#include "eval/measures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/logs.h"

namespace qkv {
namespace {

using testing::log_of;
using Rows = std::vector<std::vector<int32_t>>;

// Returns the ranks that the targets have in a list, ascending; those that it lacks come after it.
std::vector<int64_t> ranks_in(const std::vector<int32_t>& list, const std::vector<int32_t>& targets) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < list.size(); i++)
    if (std::ranges::find(targets, list[i]) != targets.end()) ranks.push_back(static_cast<int64_t>(i) + 1);
  ranks.resize(targets.size(), kListed + 1);
  return ranks;
}

TEST(Measures, EqualThoseOfRecToolsOnTheSameLists) {
  std::ifstream file(QKV_GOLDEN_DIR "/rectools/measures.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const nlohmann::json& expected : golden["cases"]) {
    const Rows previous = expected["previous"], lists = expected["lists"], targets = expected["targets"];
    const int64_t items = golden["items"];
    // All earlier events are known: a temporal split whose held-out part is empty.
    Interactions data = log_of(previous, items);
    data.times.resize(data.events.size());
    Split split;
    split.rule = SplitRule::temporal, split.validation_from = split.test_from = 1;
    const ItemCounts counts(data, split, HeldOut::test);
    MeasureSums sums(items, counts);
    for (size_t user = 0; user < lists.size(); user++) sums.add(ranks_in(lists[user], targets[user]), lists[user]);
    size_t compared = 0;
    for (const auto& [name, value] : named_measures(sums.mean())) {
      EXPECT_NEAR(value, expected["measures"][name].get<double>(), 1e-9) << name;
      compared++;
    }
    EXPECT_EQ(compared, expected["measures"].size());
  }
}

TEST(Measures, OfOneTargetAreThoseOfItsRank) {
  const ItemCounts none;
  MeasureSums sums(3, none);
  sums.add(std::vector<int64_t>{4}, {});
  sums.add(std::vector<int64_t>{21}, {});
  const RankingScore score = sums.mean();
  EXPECT_EQ(score.users, 2);
  EXPECT_EQ(score.hr[0], 0.5);
  EXPECT_EQ(score.recall[0], 0.5);
  EXPECT_EQ(score.precision[1], 0.05);
  EXPECT_EQ(score.mrr[2], 0.125);
  EXPECT_EQ(score.map[2], 0.125);
  EXPECT_EQ(score.ndcg[0], 0.5 / std::log2(5));
  EXPECT_EQ(score.coverage[2], 0);
  EXPECT_EQ(score.novelty[2], 0);
}

TEST(ItemCounts, CountTheEventsBeforeThePart) {
  const Interactions data = log_of({{0, 0, 1, 2}, {1, 1, 1, 1}, {2}}, 4);
  const ItemCounts test(data, {}, HeldOut::test), validation(data, {}, HeldOut::validation);
  EXPECT_EQ(test.events, (std::vector<int64_t>{2, 4, 1, 0}));
  EXPECT_EQ(test.users, (std::vector<int64_t>{1, 2, 1, 0}));
  EXPECT_EQ(test.all_users, 3);
  EXPECT_EQ(validation.events, (std::vector<int64_t>{2, 2, 1, 0}));
  EXPECT_EQ(test.novelty(1), -std::log2(2. / 3));
  EXPECT_EQ(test.novelty(3), -std::log2(1. / 3));  // nobody had it
}

}  // namespace
}  // namespace qkv
