// qkv::train_recommendation: from logs to a trained run directory.
#include "qkv/recommendation.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "core/hash.h"
#include "data/interactions.h"
#include "data/item_features.h"
#include "io/atomic_file.h"
#include "io/run_directory.h"
#include "io/saved_interactions.h"
#include "io/weights.h"
#include "text/vocabulary.h"
#include "train/feature_sums.h"
#include "train/recommendation_task.h"
#include "train/resume.h"
#include "train/schedule.h"
#include "train/trainer.h"
#include "train/warm_start.h"

namespace qkv {
namespace {

// What fits each other, besides the values alone.
void check(const RecommendationRecipe& recipe) {
  qkv::check(recipe.training);
  qkv::check(recipe.recommendation);
  if (recipe.training.selection != Selection::metric)
    fail("training: selection is loss, wanted metric: the loss of the validation is not measured");
  if (recipe.recommendation.loss == ItemLoss::softmax) return;
  const std::string_view loss = name_of(recipe.recommendation.loss);
  if (recipe.model.output_bias)
    fail("training: output_bias is true and loss is {}, wanted softmax: scores of drawn items have no bias", loss);
  if (recipe.training.label_smoothing > 0)
    fail("training: label_smoothing is {} and loss is {}, wanted 0, or softmax", recipe.training.label_smoothing, loss);
  if (recipe.training.r_drop > 0)
    fail("training: r_drop is {} and loss is {}, wanted 0, or softmax", recipe.training.r_drop, loss);
}

// That of the table that the files name; none without one. A resumed run, and one with a warm start, have names
// already.
ItemFeatures features_of(const RecommendationFiles& files, const RunDirectory& run, bool resumed,
                         const std::vector<std::string>& items, const TrainingObserver& observer) {
  const std::string known_path = resumed ? run.features() : RunDirectory(files.warm_start).features();
  std::vector<std::string> known;
  if (std::filesystem::exists(known_path)) known = load_names(known_path, "feature");
  ItemFeatures features;
  if (!files.features.empty()) {
    std::string report;
    features = read_item_features(files.features, files.feature_columns, items, known, report);
    if (observer.on_message) observer.on_message(report);
  } else if (!files.feature_columns.empty()) {
    fail("training: feature columns are named, and no table of features");
  }
  if (resumed && features.names != known)
    fail("{}: was begun with {} item features, this command gives {}; give the same, or another --out", run.root(),
         known.size(), features.count() == std::ssize(known) ? "others" : fmt::format("{}", features.count()));
  return features;
}

// Log and features, for saved states.
std::string fingerprint_of(const std::string& sha256, const ItemFeatures& features) {
  if (features.count() == 0) return sha256;
  const auto bytes = [](const auto& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  return fmt::format("{} {:016x}", sha256,
                     hash_mix(hash_bytes(bytes(features.ids)), hash_bytes(bytes(features.offsets))));
}

}  // namespace

bool train_recommendation(const RecommendationFiles& files, const RecommendationRecipe& wanted, const std::string& out,
                          const TrainingObserver& observer) {
  check(wanted);
  const RunDirectory run(out);
  const bool resumed = std::filesystem::exists(out);
  if (resumed && !std::filesystem::exists(run.recommendation()))
    fail("{}: exists and holds no recommendation.json, wanted a run that was trained there, or a new directory", out);
  if (resumed && !files.warm_start.empty() && !std::filesystem::exists(run.start()))
    fail("{}: was begun without a warm start; give none, or another --out", out);

  ReadReport report;
  Interactions log = read_interactions(
      files.data, {files.columns, wanted.recommendation.min_events, wanted.recommendation.core}, report);
  if (wanted.recommendation.time_gaps && !report.has_times)
    fail("training: time_gaps is true and {} has no times, wanted a log with a time in each line", files.data.front());
  std::optional<RecommenderRun> start;
  if (resumed) {
    const SavedInteractions saved = load_interactions(run);
    log = with_first_items(std::move(log), saved.data.items);
    if (saved.sha256 != report.sha256 || saved.data != log)
      fail("{}: was made with other training data; give the same, or another --out", out);
  } else if (!files.warm_start.empty()) {
    start = load_recommender(files.warm_start);
    log = with_first_items(std::move(log), start->log.data.items);
  }
  if (observer.on_message)
    for (const std::string& line : report.lines()) observer.on_message(line);

  RecommendationRecipe recipe = wanted;
  recipe.model.source_vocab = recipe.model.encoder_layers = 0;
  recipe.model.shared_embeddings = false;
  recipe.model.target_vocab = log.item_count();
  const ItemFeatures features = features_of(files, run, resumed, log.items, observer);
  recipe.model.item_features = features.count();
  recipe.model.gap_buckets = wanted.recommendation.time_gaps ? kGapBuckets : 0;
  check(recipe.model);
  RecommendationTask task(recipe, log, fingerprint_of(report.sha256, features), run.start(), features);
  end_by_steps(recipe.training, task.batches());
  if (recipe.training.eval_every == 0)
    recipe.training.eval_every = std::max<int64_t>(1, task.batches() / recipe.training.accumulate);
  if (resumed) check_same(run, RecommendationRecipe{load_recipe(run), load_recommendation(run)}, recipe);
  if (!resumed)
    make_run(run, [&](const RunDirectory& partial) {
      make_directory(partial.checkpoints());
      write_file_atomic(partial.config(), to_json(recipe.model));
      write_file_atomic(partial.training(), json_from_fields(recipe.training));
      write_file_atomic(partial.recommendation(), json_from_fields(recipe.recommendation));
      save_interactions(partial, log, report.sha256);
      if (features.count() > 0) write_file_atomic(partial.features(), pieces_to_json(features.names));
      if (!start) return;
      Transformer<float> model(recipe.model);
      model.parameters().initialise(static_cast<uint64_t>(recipe.training.seed), recipe.training.initial_deviation);
      start_from(files.warm_start, *start, recipe, model.parameters());
      if (const Parameter<float>* G = model.item_features()) {
        const std::vector<float> none(static_cast<size_t>(G->size()));
        FeatureSums(features).add_change(G->matrix(), {none.data(), G->shape[0], G->shape[1]},
                                         start->log.data.item_count(), model.items().matrix());
      }
      save_weights(partial.start(), model.parameters(), model.parameters().values());
    });
  return Trainer(recipe, run, task, observer).run();
}

}  // namespace qkv
