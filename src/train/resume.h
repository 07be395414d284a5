// Which values of a recipe may change when a run is resumed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/fail.h"
#include "io/run_config.h"
#include "qkv/training.h"

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

// Reads the model and training.json of a run.
inline Recipe read_recipe(const RunDirectory& run) {
  const RunConfig config = read_config(run);
  return {config.model, read_fields<TrainingConfig>(run, run.training()), config.items};
}

}  // namespace qkv
