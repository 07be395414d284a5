// Scores of all items: s_v = h · E[v], where h is the last hidden state after a history.
#pragma once

#include <cstdint>
#include <span>

#include "data/log/history.h"
#include "model/inference/inference_engine.h"

namespace qkv {

using Histories = std::span<const History>;

// Returns what a model reads of histories: of each the last max_length events, as HistoryOptions describes.
Packed packed_histories(const Transformer<float>& model, bool positions_from_end, Histories histories);

// Returns the last hidden state of each history, [histories, d], from the arena. Reads the last max_length events of a
// history, as HistoryOptions describes. A row depends only on its history, bit by bit. Throws Error for an empty
// history and for unknown items.
Matrix<float> encode_histories(const InferenceEngine& model, bool positions_from_end, Histories histories,
                               Arena& arena);

// Assigns the same to h: [histories, d]. Processes histories in batches, so that memory does not grow with their
// number.
void encode_histories_into(const InferenceEngine& model, bool positions_from_end, Histories histories, Matrix<float> h,
                           Arena& arena);

// Computes scores: [histories, items]. Processes histories in batches, so that memory does not grow with their number.
void score_items(const InferenceEngine& model, bool positions_from_end, Histories histories, Matrix<float> scores,
                 Arena& arena);

}  // namespace qkv
