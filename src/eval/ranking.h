// Evaluation of any scoring of items by ranking a catalogue. docs/evaluation-protocols.md describes the protocols.
#pragma once

#include <cstdint>
#include <span>

#include "core/function_ref.h"
#include "core/matrix.h"
#include "data/interactions.h"
#include "data/split.h"
#include "eval/negatives.h"
#include "qkv/ranking.h"

namespace qkv {

// Scores all items for a batch of users. histories: the past events of each row, at least one; scores: [rows, items] is
// assigned. Scores may be any float, including NaN.
using ScoreItems = FunctionRef<void(std::span<const History> histories, Matrix<float> scores)>;

struct RankingOptions {
  Split split = {};
  HeldOut part = HeldOut::test;
  const Negatives* negatives = nullptr;  // the candidates of each user; null: all items except the user's history
  bool repeats = false;                  // the user's history are candidates and may be listed
};

// Ranks the target of every user by the score given its history. The target is always a candidate, even if the history
// contains it. Users are scored in batches for which [rows, items] takes at most 64 MiB, or a single row. The result
// does not depend on the number of threads if `score` does not.
RankingScore rank_targets(const Interactions& data, const RankingOptions& options, ScoreItems score);

}  // namespace qkv
