// The best items after a history, and the effect of each event of the history on their scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/log/transitions.h"
#include "ops/best_tokens.h"
#include "recommend/item_scores.h"

namespace qkv {

// The model of a recommender.
struct ItemModel {
  const InferenceEngine& engine;
  bool positions_from_end;
  const Transitions* transitions = nullptr;  // added to the scores; null: none

  int64_t items() const { return engine.config().target_vocab; }
  int64_t max_length() const { return engine.config().max_length; }
};

// A request for the best items.
struct ItemQuery {
  History history;              // not empty
  std::vector<int32_t> hidden;  // items to exclude, in strictly ascending order
};

// Returns up to `top` items for each query, best first. allowed: if not null, return only these items, in strictly
// ascending order. Items with a score of NaN or −∞ are omitted. Each result depends only on its query, bit by bit.
std::vector<std::vector<ScoredToken>> best_items(const ItemModel& model, std::span<const ItemQuery> queries,
                                                 const std::vector<int32_t>* allowed, int64_t top, Arena& arena);

// Returns effects, [items][read]: the score of an item minus its score after the history without one of the events that
// the model reads, which are the last max_length. If there is an older event, the model then reads it as well. The time
// gap of the event after the removed one extends to the event before it. For a history of one event, the effects of
// each item are empty.
std::vector<std::vector<double>> effects_of_events(const ItemModel& model, const History& history,
                                                   std::span<const ScoredToken> items, Arena& arena);

}  // namespace qkv
