// What a recommender thinks of every item: s_v = h · E[v], h the last hidden state after a history.
#pragma once

#include <cstdint>
#include <span>

#include "data/history.h"
#include "model/transformer.h"

namespace qkv {

using Histories = std::span<const History>;

// h: [histories, d] from the arena. Of a history the last max_length events are read, as HistoryOptions says. A row
// depends on its history alone, bit by bit. Throws Error for an empty history and for items that the model does not
// have.
Matrix<float> encode_histories(const Transformer<float>& model, bool positions_from_end, Histories histories,
                               Arena& arena);

// scores: [histories, items], assigned. Histories go through the model some at a time: memory does not grow with their
// number.
void score_items(const Transformer<float>& model, bool positions_from_end, Histories histories, Matrix<float> scores,
                 Arena& arena);

}  // namespace qkv
