// qkv::train_recommendation: from logs to a trained run directory.
#include "qkv/recommendation.h"

#include <filesystem>

#include "core/fail.h"
#include "core/fields.h"
#include "data/interactions.h"
#include "io/atomic_file.h"
#include "io/run_directory.h"
#include "io/saved_interactions.h"
#include "train/recommendation_task.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace qkv {

bool train_recommendation(const std::vector<std::string>& data, const std::vector<std::string>& columns,
                          const RecommendationRecipe& wanted, const std::string& out,
                          const TrainingObserver& observer) {
  check(wanted.training);
  check(wanted.recommendation);
  const RunDirectory run(out);
  const bool resumed = std::filesystem::exists(out);
  if (resumed && !std::filesystem::exists(run.recommendation()))
    fail("{}: exists and holds no recommendation.json, wanted a run that was trained there, or a new directory", out);

  ReadReport report;
  const Interactions log =
      read_interactions(data, {columns, wanted.recommendation.min_events, wanted.recommendation.core}, report);
  if (observer.on_message)
    for (const std::string& line : report.lines()) observer.on_message(line);

  RecommendationRecipe recipe = wanted;
  recipe.model.source_vocab = recipe.model.encoder_layers = 0;
  recipe.model.shared_embeddings = false;
  recipe.model.target_vocab = log.item_count();
  check(recipe.model);
  RecommendationTask task(recipe, log, report.sha256);
  if (recipe.training.eval_every == 0) recipe.training.eval_every = task.batches();
  if (resumed) check_same(run, RecommendationRecipe{load_recipe(run), load_recommendation(run)}, recipe);
  if (!resumed)
    make_run(run, [&](const RunDirectory& partial) {
      make_directory(partial.checkpoints());
      write_file_atomic(partial.config(), to_json(recipe.model));
      write_file_atomic(partial.training(), json_from_fields(recipe.training));
      write_file_atomic(partial.recommendation(), json_from_fields(recipe.recommendation));
      save_interactions(partial, log, report.sha256);
    });
  return Trainer(recipe, run, task, observer).run();
}

}  // namespace qkv
