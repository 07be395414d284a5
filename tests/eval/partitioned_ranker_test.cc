#include <gtest/gtest.h>

#include "core/to_size.h"
#include "eval/rankers.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/logs.h"

namespace qkv {
namespace {

constexpr int32_t kDealtItems = 40;

// Answers with numbers that depend on the history only.
class MadeUpRanker : public ItemRanker {
 public:
  void rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) override {
    EXPECT_FALSE(queries.empty());
    asked += std::ssize(queries);
    for (size_t i = 0; i < queries.size(); i++) {
      const int32_t last = queries[i].history.items.back();
      answers[i].list = {{1.5f, last}, {-0.5f, (last + 7) % kDealtItems}};
      answers[i].not_below.assign(queries[i].targets.size(), last % 5);
    }
  }

  int64_t asked = 0;
};

Interactions made_up_log(int32_t users) {
  std::vector<std::vector<int32_t>> events;
  for (int32_t user = 0; user < users; user++)
    events.push_back({user % 7, user % kDealtItems, user * 3 % kDealtItems, user * 5 % kDealtItems});
  return testing::log_of(events, kDealtItems);
}

struct Ranked {
  RankingScore score;
  std::vector<std::pair<int32_t, float>> listed;
};

Ranked ranked_by(ItemRanker& ranker, const Interactions& log, int64_t at_once) {
  Ranked ranked;
  const auto add = [&](int64_t, std::span<const ScoredToken> list) {
    for (const ScoredToken& item : list) ranked.listed.emplace_back(item.token, item.logit);
  };
  ranked.score = rank_targets(log, {.next = 2, .on_list = add, .users_at_once = at_once}, ranker);
  return ranked;
}

TEST(PartitionedRanker, GivesAllRanksTheScoresOfOneProcess) {
  const Interactions log = made_up_log(101);
  const auto compare = [&](Communicator& communicator) {
    const RankPartition partition(communicator);
    bool same = true;
    for (const int64_t at_once : {1, 8, 1000}) {
      MadeUpRanker alone, own;
      PartitionedRanker dealt(own, kDealtItems, partition);
      const Ranked expected = ranked_by(alone, log, kUsersAtOnce), found = ranked_by(dealt, log, at_once);
      same &= found.listed == expected.listed && found.score.ndcg == expected.score.ndcg &&
              found.score.users == expected.score.users && found.score.coverage == expected.score.coverage;
      same &= at_once == 1 || own.asked <= 101 / partition.ranks() + 101 / at_once + 1;
    }
    communicator.leave();
    return same;
  };
  for (const int ranks : {2, 3}) EXPECT_EQ(testing::failures_on_ranks(ranks, compare), 0) << ranks;
}

}  // namespace
}  // namespace qkv
