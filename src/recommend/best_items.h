// The best items after a history, and what each event of the history does to their scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/logits/best_tokens.h"
#include "recommend/item_scores.h"

namespace qkv {

// What a recommender scores with.
struct ItemModel {
  const Transformer<float>& model;
  bool positions_from_end;

  int64_t items() const { return model.config().target_vocab; }
  int64_t max_length() const { return model.config().max_length; }
};

struct ItemQuery {
  History history;              // not empty
  std::vector<int32_t> hidden;  // items that are not wanted, rising, each once
};

// The `top` best items for each query, the best first, of all items or of `allowed` (rising, each once), if it is set.
// Those with a score of NaN or −∞ are left out. Each answer depends on its query alone, bit by bit.
std::vector<std::vector<ScoredToken>> best_items(const ItemModel& model, std::span<const ItemQuery> queries,
                                                 const std::vector<int32_t>* allowed, int64_t top, Arena& arena);

// [items][read]: the score of an item after the history less its score after the history without one of the events that
// the model reads, the last max_length of them; an older event then takes the free place, and the gap after it reaches
// to the event before it. Nothing for each item of a history of one event, without which there is no score.
std::vector<std::vector<double>> effects_of_events(const ItemModel& model, const History& history,
                                                   std::span<const ScoredToken> items, Arena& arena);

}  // namespace qkv
