// The protocols that rank a catalogue, over whatever scores it. docs/evaluation-protocols.md describes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "core/matrix.h"
#include "data/interactions.h"
#include "data/split.h"
#include "qkv/ranking.h"

namespace qkv {

// Scores all items for some users. histories: of each row the items so far, at least one, oldest first; scores: [rows,
// items], assigned. Any float may come, NaN too.
using ScoreItems = FunctionRef<void(std::span<const std::span<const int32_t>> histories, Matrix<float> scores)>;

// Items that each user's target is ranked with, besides itself.
struct Negatives {
  int64_t each = 0;            // of every user
  std::vector<int32_t> items;  // [users, each]

  std::span<const int32_t> of(int64_t user) const {
    return std::span(items).subspan(static_cast<size_t>(user * each), static_cast<size_t>(each));
  }
};

// `each` items for every user, drawn uniformly and with replacement among those that are not in the user's part to
// train on; they depend on the seed, the user and that part alone. A user who knows every item gets drawn from all of
// them.
Negatives draw_negatives(const Interactions& data, const Split& split, int64_t each, uint64_t seed);

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
