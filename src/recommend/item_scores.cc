#include "recommend/item_scores.h"

#include <algorithm>

namespace qkv {
namespace {

constexpr int64_t kMostTokens = 25'600;  // maximum tokens per batch; a longer history is a batch of its own

// Returns how many of the first histories make up a batch.
size_t batch_size(Histories histories, int64_t max_length) {
  int64_t tokens = 0;
  size_t count = 0;
  for (; count < histories.size(); count++) {
    tokens += std::min(max_length, std::ssize(histories[count].items));
    if (tokens > kMostTokens && count > 0) break;
  }
  return count;
}

}  // namespace

Packed packed_histories(const Transformer<float>& model, bool positions_from_end, Histories histories) {
  const HistoryOptions options{model.config().max_length, positions_from_end, model.item_inputs().gap_buckets > 0};
  Packed packed;
  for (const History& history : histories) append_history(history, options, packed);
  return packed;
}

Matrix<float> encode_histories(const InferenceEngine& model, bool positions_from_end, Histories histories,
                               Arena& arena) {
  Context context{.arena = arena, .inference = true};
  return model.last_hidden(packed_histories(model.host(), positions_from_end, histories), context);
}

void encode_histories_into(const InferenceEngine& model, bool positions_from_end, Histories histories, Matrix<float> h,
                           Arena& arena) {
  for (int64_t row = 0; !histories.empty();) {
    const Arena::Scope scope(arena);
    const size_t count = batch_size(histories, model.config().max_length);
    const Matrix<float> part = encode_histories(model, positions_from_end, histories.first(count), arena);
    for (int64_t n = 0; n < part.rows; n++) std::copy_n(part.row(n), part.cols, h.row(row + n));
    histories = histories.subspan(count);
    row += part.rows;
  }
}

void score_items(const InferenceEngine& model, bool positions_from_end, Histories histories, Matrix<float> scores,
                 Arena& arena) {
  Context context{.arena = arena, .inference = true};
  for (int64_t row = 0; !histories.empty();) {
    const Arena::Scope scope(arena);
    const size_t count = batch_size(histories, model.config().max_length);
    const Matrix<float> h = encode_histories(model, positions_from_end, histories.first(count), arena);
    model.host().output().logits_into(h, scores.row_range(row, row + h.rows), context);
    histories = histories.subspan(count);
    row += h.rows;
  }
}

}  // namespace qkv
