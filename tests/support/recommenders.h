// Small recommenders with random weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/runs/run.h"
#include "qkv/recommender.h"
#include "tests/support/models.h"

namespace qkv::testing {

// Two layers of width 8 that read the last 6 events.
inline ModelConfig item_config(int64_t items) {
  ModelConfig c;
  c.target_vocab = items;
  c.encoder_layers = 0;
  c.decoder_layers = 2;
  c.d_model = c.ffn = 8;
  c.attention.heads = 2;
  c.attention.key_width = c.attention.value_width = 4;
  c.shared_embeddings = false;
  c.positions = Positions::learned;
  c.norm.position = NormPosition::query;
  c.norm.final = true;
  c.max_length = 6;
  return c;
}

// Items "i0", "i1", …; user "ann" has i0, i1, …, i9, "bob" i3, i1, i3, "eve" i1.
inline Interactions small_log(int64_t items) {
  Interactions log;
  for (int64_t i = 0; i < items; i++) log.items.push_back("i" + std::to_string(i));
  log.users = {"ann", "bob", "eve"};
  log.events = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 1, 3, 1};
  log.offsets = {0, 10, 13, 14};
  return log;
}

// The items of a small log in most tests.
inline constexpr int64_t kLogItems = 300;

inline std::vector<std::string> names_of(const Recommendations& answer) {
  std::vector<std::string> names;
  for (const Recommendation& item : answer.items) names.push_back(item.item);
  return names;
}

// A run directory of item_config and `log`, which reads the gaps where the log has times.
inline void create_recommender(const std::string& directory, const Interactions& log, bool positions_from_end = true,
                               bool repeats = false, const std::optional<TransitionConfig>& transitions = {}) {
  ModelConfig config = item_config(log.item_count());
  const ItemInputs items = {.gap_buckets = log.times.empty() ? 0 : kGapBuckets};
  Transformer<float> model(config, items);
  randomize(model.parameters(), 1);
  RecommendationConfig recommendation;
  recommendation.positions_from_end = positions_from_end;
  recommendation.repeats = repeats;
  recommendation.time_gaps = !log.times.empty();
  create_run(
      RunDirectory(directory),
      RecommenderRun{config, items, recommendation, {log, std::string(64, '0')}, nullptr, transitions},
      [&](const RunDirectory& run) { save_weights(run.model(), model.parameters(), model.parameters().values()); });
}

}  // namespace qkv::testing
