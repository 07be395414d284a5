// Which values of a recipe may change when a run is resumed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fail.h"
#include "core/fields.h"
#include "io/atomic_file.h"
#include "io/runs/run_config.h"
#include "qkv/training.h"
#include "train/optimizer/schedule.h"

namespace qkv {

// Sets the values that may change when a run of the recipe `saved` is resumed to those of `saved`.
inline void keep_limits(TrainingConfig& given, const TrainingConfig& saved) {
  if (saved.schedule != Schedule::cosine) given.max_steps = saved.max_steps;  // a cosine ends at max_steps
  given.max_epochs = saved.max_epochs;
  given.max_minutes = saved.max_minutes;
  given.save_minutes = saved.save_minutes;
  given.patience = saved.patience;
  given.max_skipped_steps = saved.max_skipped_steps;
  given.detect_anomaly = saved.detect_anomaly;
  given.recompute = saved.recompute;
}

// Sets values of the recipe `given` of a run that is resumed, which follow from its limits unless they are given, to
// those of the run.
template <class R>
void keep_fitted(R& given, const R& saved) {
  TrainingConfig& now = given.training;
  const TrainingConfig& before = saved.training;
  const auto is_free = [&](const char* name) { return given.fit && !given.given.contains(name); };
  if (is_free("warmup_steps")) now.warmup_steps = before.warmup_steps;
  if (is_free("learning_rate")) now.learning_rate = before.learning_rate;
  if (is_free("cooldown")) now.cooldown = before.cooldown;
  if (before.schedule == Schedule::cosine && (now.max_steps == 0 || is_free("max_steps")))
    now.max_steps = before.max_steps;
}

// Throws Error if max_epochs was chosen as the end of a cosine and is now another limit that training cannot reach.
// `batches` is the number of batches per epoch.
template <class R>
void check_cosine_end(const RunDirectory& run, const R& saved, const R& given, int64_t batches) {
  const TrainingConfig &before = saved.training, &now = given.training;
  if (before.schedule != Schedule::cosine || before.max_epochs == 0 || now.max_epochs == before.max_epochs) return;
  if (now.max_epochs > 0 && now.max_epochs < before.max_epochs) return;
  if (now.max_epochs == 0 && given.fit && !given.given.contains("max_epochs")) return;
  TrainingConfig of_epochs = before;
  of_epochs.max_steps = 0;
  set_cosine_end(of_epochs, batches);
  if (of_epochs.max_steps != before.max_steps) return;
  fail(
      "{}: max_epochs was {} when this run was started and is now {}; its schedule cosine ends after {} epochs: use "
      "the "
      "same value, or start another run from this one (init)",
      run.root(), before.max_epochs, now.max_epochs, before.max_epochs);
}

// The first value of a recipe that differs from another recipe's and may not.
struct Difference {
  std::string name, before, now;
};
template <class R>
std::optional<Difference> first_difference(const R& saved, R given) {
  keep_limits(given.training, saved.training);
  const std::vector<RecipeOption> before = recipe_options(saved), now = recipe_options(given);
  for (size_t i = 0; i < now.size(); i++)
    if (before[i].value != now[i].value) return Difference{now[i].name, before[i].value, now[i].value};
  return std::nullopt;
}

// Throws Error, naming the first value that differs and may not.
template <class R>
void check_same(const RunDirectory& run, const R& saved, const R& given) {
  if (const auto different = first_difference(saved, given))
    fail("{}: {} was {} when this run was started and is now {}; use the same value or another directory", run.root(),
         different->name, different->before, different->now);
}

// Throws Error, naming the first value that differs from the recipe of rank 0 and may not.
template <class R>
void check_same_as_first(const R& first, const R& given) {
  if (const auto different = first_difference(first, given))
    fail("{} is {}, but {} on rank 0; start all ranks with the same options", different->name, different->now,
         different->before);
}

// Throws Error unless the directory is a run of this kind that training started.
inline void check_resumable(const RunDirectory& run, RunKind kind) {
  if (!std::filesystem::exists(run.training()))
    fail("{}: exists but has no training.json; expected a run that training started, or a new directory", run.root());
  expect_kind(run, read_config(run).kind, {kind});
}

// Writes training.json. A cooldown of 0 is left out, so that older versions read the file.
inline void write_training(const RunDirectory& run, TrainingConfig config) {
  FieldWriter writer;
  visit_fields(config, [&](std::string_view name, const auto& value, const Field& field) {
    if (name != "cooldown" || config.cooldown != 0) writer(name, value, field);
  });
  write_file_atomic(run.training(), writer.text());
}

// Reads the model and training.json of a run.
inline Recipe read_recipe(const RunDirectory& run) {
  const RunConfig config = read_config(run);
  return {config.model, read_fields<TrainingConfig>(run, run.training()), config.items};
}

}  // namespace qkv
