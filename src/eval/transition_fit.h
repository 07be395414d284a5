// Fits the weight and the shape of counted transitions to the targets of users.
#pragma once

#include "data/log/transitions.h"
#include "eval/ranking.h"
#include "ranks/rank_partition.h"

namespace qkv {

// Means over users at cutoff 10, as in RankingScore.
struct ScoreAt10 {
  double ndcg = 0, hr = 0, mrr = 0;
};

// The weight that ranks the targets best when the transitions are added to the scores of a model.
struct TransitionFit {
  double weight = 0;
  ScoreAt10 with, without;  // of the model with and without transitions
};

// Counts the events before the held-out part.
Transitions count_transitions(const Interactions& data, const Split& split, HeldOut part,
                              const TransitionConfig& config);

// repeats: whether items of the history are candidates. If not, a target that the history contains is a miss.

// Chooses the decay, then the scale, with which the transitions alone have the best NDCG@10 on the validation. Uses at
// most 3,000 users, evenly spaced. `transitions` counts the events before the validation.
void fit_shape(const Interactions& data, const Split& split, bool repeats, Transitions& transitions);

// Chooses the weight of the best NDCG@10 on the validation from a grid that begins with 0, the smallest among equals.
// The weight of `transitions` is 1. Users are dealt out to ranks, which all get the fit.
TransitionFit fit_weight(const Interactions& data, const Split& split, bool repeats, const Transitions& transitions,
                         ScoreItems model, const RankPartition& partition = {});

}  // namespace qkv
