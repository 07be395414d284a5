// Which values of a recipe may change when a run is resumed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/fail.h"
#include "io/run_config.h"
#include "qkv/training.h"

namespace qkv {

// Returns whether a value may differ when a run of this recipe is resumed.
inline bool may_differ(const std::string& name, const Recipe& saved) {
  if (name == "max_steps") return saved.training.schedule != Schedule::cosine;
  return name == "max_epochs" || name == "max_minutes" || name == "patience" || name == "recompute";
}

// Throws Error, naming the first value that differs and may not.
template <class R>
void check_same(const RunDirectory& run, const R& saved, const R& given) {
  const std::vector<RecipeOption> before = recipe_options(saved), now = recipe_options(given);
  for (size_t i = 0; i < now.size(); i++)
    if (before[i].value != now[i].value && !may_differ(now[i].name, saved))
      fail("{}: {} was {} when this run was started and is now {}; use the same value or another directory", run.root(),
           now[i].name, before[i].value, now[i].value);
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
