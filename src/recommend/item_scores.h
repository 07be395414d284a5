// What a recommender thinks of every item: s_v = h · E[v], h the last hidden state after a history.
#pragma once

#include <cstdint>
#include <span>

#include "model/transformer.h"

namespace qkv {

using Histories = std::span<const std::span<const int32_t>>;  // item ids, oldest first

// h: [histories, d] from the arena. Of a history the last max_length items count; the newest has the last position if
// positions_from_end, else the oldest has the first. A row depends on its history alone, bit by bit. Throws Error for
// an empty history and for items that the model does not have.
Matrix<float> encode_histories(const Transformer<float>& model, bool positions_from_end, Histories histories,
                               Arena& arena);

// scores: [histories, items], assigned.
void score_items(const Transformer<float>& model, bool positions_from_end, Histories histories, Matrix<float> scores,
                 Arena& arena);

}  // namespace qkv
