#include "io/recommender_run.h"

#include "core/fail.h"
#include "io/run_directory.h"
#include "io/weights.h"

namespace qkv {

RecommenderRun load_recommender(const std::string& directory) {
  const RunDirectory run(directory);
  const ModelConfig model = load_config(run);
  if (model.encoder_layers != 0)
    fail("{}: encoder_layers is {}, wanted 0, a model that recommends", run.config(), model.encoder_layers);
  RecommenderRun loaded{load_recommendation(run), load_interactions(run), nullptr};
  if (loaded.log.data.item_count() != model.target_vocab)
    fail("{}: holds {} items, config.json says {}", run.items(), loaded.log.data.item_count(), model.target_vocab);
  const int64_t gap_buckets = loaded.recommendation.time_gaps ? kGapBuckets : 0;
  if (model.gap_buckets != gap_buckets)
    fail("{}: gap_buckets is {}, wanted {}: {} says time_gaps {}", run.config(), model.gap_buckets, gap_buckets,
         run.recommendation(), loaded.recommendation.time_gaps);
  loaded.model = load_model(run.model(), model);
  return loaded;
}

}  // namespace qkv
