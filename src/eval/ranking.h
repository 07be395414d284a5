// Evaluation of any scoring of items by ranking a catalogue. docs/evaluation-protocols.md describes the protocols.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "data/log/interactions.h"
#include "data/log/split.h"
#include "eval/measures.h"
#include "eval/negatives.h"
#include "eval/segments.h"
#include "ops/best_tokens.h"
#include "qkv/evaluate.h"
#include "qkv/matrix.h"

namespace qkv {

constexpr int64_t kUsersAtOnce = 384;  // whose targets a ranker gets in one call

// A user whose targets are to be ranked. The candidates are the targets that are not hidden and, if `drawn` is empty,
// all other items that are not hidden; otherwise the drawn ones.
struct RankingQuery {
  History history;                   // the events before the targets, at least one
  std::vector<int32_t> targets;      // distinct, at least one, ascending
  std::vector<int32_t> hidden;       // ascending; may contain targets
  std::span<const int32_t> drawn{};  // an item may be drawn twice, and be a target
};

struct RankingAnswer {
  // For each target, the number of candidates besides the targets whose score is not below that of the target. A drawn
  // item counts each time, also if it is a target. That of a hidden target is not read.
  std::vector<int64_t> not_below;
  // The kListed best of all items that are not hidden, best first; NaN and −∞ are omitted.
  std::vector<ScoredToken> list;
};

// Scores items and ranks targets among them.
class ItemRanker {
 public:
  virtual ~ItemRanker() = default;

  // Assigns answers, one for each query. An answer depends only on its query.
  virtual void rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) = 0;
};

// Scores all items for a batch of users. histories: the past events of each row, at least one; scores: [rows, items] is
// assigned. Scores may be any float, including NaN.
using ScoreItems = FunctionRef<void(std::span<const History> histories, Matrix<float> scores)>;

// Ranks by the scores of all items, in batches for which [rows, items] takes at most 64 MiB, or a single row.
class DenseRanker : public ItemRanker {
 public:
  DenseRanker(int64_t items, ScoreItems score) : items_(items), score_(score) {}  // score must outlive the ranker

  void rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) override;

 private:
  int64_t items_;
  ScoreItems score_;
  std::vector<float> scores_;
};

struct RankingOptions {
  Split split = {};
  HeldOut part = HeldOut::test;
  const Negatives* negatives = nullptr;  // the candidates of each user; null: all items except the user's history
  bool repeats = false;                  // the user's history are candidates and may be listed
  int64_t next = 1;                      // targets of a user: the first `next` events of the held-out part
  int64_t most_users = 0;  // evaluate at most that many users, those with the smallest hashes of their names; 0: all
  const ItemCounts* counts = nullptr;  // for novelty and popularity, which are 0 without them
  const Segments* segments = nullptr;  // groups of users that are evaluated separately as well
  FunctionRef<void(int64_t user, std::span<const ScoredToken> list)> on_list = {};  // called in the order of users
  int64_t users_at_once = kUsersAtOnce;
};

struct SegmentedScore {
  RankingScore all;
  std::vector<RankingScore> segments;  // of each segment; users = 0 for one without users
};

// Ranks the targets of every user by the score given its history. Without `repeats` a target that the history contains
// is no candidate and counts as a miss, because it would not be listed. The result does not depend on the number of
// threads if the ranker does not.
SegmentedScore rank_segments(const Interactions& data, const RankingOptions& options, ItemRanker& ranker);
RankingScore rank_targets(const Interactions& data, const RankingOptions& options, ItemRanker& ranker);
RankingScore rank_targets(const Interactions& data, const RankingOptions& options, ScoreItems score);

// Returns the number of users for which users × items is at most `pairs`, but at least 1,000: a value for most_users.
int64_t users_for(int64_t items, int64_t pairs);

}  // namespace qkv
