// Baseline recommenders that only count: popularity, a first-order Markov chain, and transitions over several events.
// All learn from the events that precede the held-out part. Each is a ScoreItems, and gives a SparseRanker what it
// needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "data/log/interactions.h"
#include "data/log/split.h"
#include "data/log/transitions.h"
#include "eval/ranking.h"
#include "ops/best_tokens.h"
#include "qkv/matrix.h"

namespace qkv {

// Ranks items by their number of events over all users; equal numbers get equal scores. Ignores the history.
class Popularity {
 public:
  Popularity(const Interactions& data, const Split& split, HeldOut part);

  void operator()(std::span<const History> histories, Matrix<float> scores) const;

  std::span<const float> scores() const { return scores_; }  // one per item: integers from 0

 private:
  std::vector<float> scores_;
};

// First-order Markov chain: ranks items by how often they came right after the last item of the history. Ties,
// including items that never did, are ranked by popularity.
class Markov {
 public:
  Markov(const Interactions& data, const Split& split, HeldOut part);

  void operator()(std::span<const History> histories, Matrix<float> scores) const;

  const Popularity& popularity() const { return popularity_; }  // the scores of items that never came next
  // Appends the items that came after the last item of the history, in ascending order of their scores.
  void append_next(const History& history, std::vector<ScoredToken>& next) const;

 private:
  Popularity popularity_;
  std::vector<int64_t> offsets_ = {0};  // item i was followed by next_[offsets_[i]] … next_[offsets_[i + 1] − 1]
  std::vector<ScoredToken> next_;
};

// Ranks items by counted transitions from the last items of the history. Items without any follow, by popularity.
class TransitionsAlone {
 public:
  // Counts the events before the held-out part.
  TransitionsAlone(const Interactions& data, const Split& split, HeldOut part, TransitionConfig config);

  void operator()(std::span<const History> histories, Matrix<float> scores) const;

  std::span<const float> popularity() const { return popularity_; }  // the scores of items without transitions
  // Appends the items with transitions, in ascending order.
  void append_next(const History& history, std::vector<ScoredToken>& next) const;

 private:
  std::vector<float> popularity_;  // below 0
  Transitions transitions_;
};

// Calls rank(name, ranker) with popularity and then with the Markov chain.
void rank_baselines(const Interactions& data, const Split& split, HeldOut part,
                    FunctionRef<void(const char* name, ItemRanker& ranker)> rank);

}  // namespace qkv
