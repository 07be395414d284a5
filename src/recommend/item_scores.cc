#include "recommend/item_scores.h"

#include <algorithm>

namespace qkv {

Matrix<float> encode_histories(const Transformer<float>& model, bool positions_from_end, Histories histories,
                               Arena& arena) {
  const auto longest = static_cast<size_t>(model.config().max_length);
  Packed packed;
  for (const std::span<const int32_t> history : histories) {
    const std::span<const int32_t> items = history.last(std::min(history.size(), longest));
    packed.append(items, positions_from_end ? static_cast<int64_t>(longest - items.size()) : 0);
  }
  Context context{.arena = arena, .inference = true};
  return model.last_hidden(packed, context);
}

void score_items(const Transformer<float>& model, bool positions_from_end, Histories histories, Matrix<float> scores,
                 Arena& arena) {
  const Arena::Scope scope(arena);
  Context context{.arena = arena, .inference = true};
  const Matrix<float> h = encode_histories(model, positions_from_end, histories, arena);
  model.output().logits_into(h, scores, context);
}

}  // namespace qkv
