// The protocols that rank a catalogue, over whatever scores it. docs/evaluation-protocols.md describes them.
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

// Scores all items for some users. histories: of each row the events so far, at least one; scores: [rows, items],
// assigned. Any float may come, NaN too.
using ScoreItems = FunctionRef<void(std::span<const History> histories, Matrix<float> scores)>;

struct RankingOptions {
  Split split = {};
  Part part = Part::test;
  const Negatives* negatives = nullptr;  // of every user; null: all items but those in the user's history
};

// Foretells every user's target from their history. The target is always a candidate, even where the history has it
// too. Users are scored some at a time, so that [rows, items] takes at most 64 MiB, or one row. The same for any number
// of threads if `score` is.
RankingScore rank_targets(const Interactions& data, const RankingOptions& options, ScoreItems score);

}  // namespace qkv
