#include "recommend/item_scores.h"

namespace qkv {

Matrix<float> encode_histories(const Transformer<float>& model, bool positions_from_end, Histories histories,
                               Arena& arena) {
  const HistoryOptions options{model.config().max_length, positions_from_end, model.config().gap_buckets > 0};
  Packed packed;
  for (const History& history : histories) append_history(history, options, packed);
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
