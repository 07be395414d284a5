// qkv::train_recommendation: from logs to a trained run directory.
#include "qkv/recommendation.h"

#include <filesystem>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "data/interactions.h"
#include "io/atomic_file.h"
#include "io/run_directory.h"
#include "io/saved_interactions.h"
#include "io/weights.h"
#include "train/recommendation_task.h"
#include "train/resume.h"
#include "train/trainer.h"
#include "train/warm_start.h"

namespace qkv {
namespace {

void save_start(const RunDirectory& run, const std::string& from, const RecommendationRecipe& recipe) {
  Transformer<float> model(recipe.model);
  model.parameters().initialise(static_cast<uint64_t>(recipe.training.seed));
  start_from(RunDirectory(from), recipe.model, model.parameters());
  save_weights(run.start(), model.parameters(), model.parameters().values());
}

}  // namespace

bool train_recommendation(const RecommendationFiles& files, const RecommendationRecipe& wanted, const std::string& out,
                          const TrainingObserver& observer) {
  check(wanted.training);
  check(wanted.recommendation);
  const RunDirectory run(out);
  const bool resumed = std::filesystem::exists(out);
  if (resumed && !std::filesystem::exists(run.recommendation()))
    fail("{}: exists and holds no recommendation.json, wanted a run that was trained there, or a new directory", out);
  const std::string& before = resumed ? out : files.warm_start;  // the run whose items keep their ids

  ReadReport report;
  Interactions log = read_interactions(
      files.data, {files.columns, wanted.recommendation.min_events, wanted.recommendation.core}, report);
  if (!before.empty()) log = with_first_items(std::move(log), load_interactions(RunDirectory(before)).data.items);
  if (observer.on_message)
    for (const std::string& line : report.lines()) observer.on_message(line);

  RecommendationRecipe recipe = wanted;
  recipe.model.source_vocab = recipe.model.encoder_layers = 0;
  recipe.model.shared_embeddings = false;
  recipe.model.target_vocab = log.item_count();
  check(recipe.model);
  RecommendationTask task(recipe, log, report.sha256, run.start());
  if (recipe.training.eval_every == 0) recipe.training.eval_every = task.batches();
  if (resumed) check_same(run, RecommendationRecipe{load_recipe(run), load_recommendation(run)}, recipe);
  if (!resumed)
    make_run(run, [&](const RunDirectory& partial) {
      make_directory(partial.checkpoints());
      write_file_atomic(partial.config(), to_json(recipe.model));
      write_file_atomic(partial.training(), json_from_fields(recipe.training));
      write_file_atomic(partial.recommendation(), json_from_fields(recipe.recommendation));
      save_interactions(partial, log, report.sha256);
      if (!files.warm_start.empty()) save_start(partial, files.warm_start, recipe);
    });
  return Trainer(recipe, run, task, observer).run();
}

}  // namespace qkv
