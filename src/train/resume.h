// Which values of a recipe may change when a run is resumed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/fail.h"
#include "io/run_directory.h"
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

// Throws Error if a directory that exists does not hold `file`, which a run of the kind to resume has.
inline void check_resumable(const RunDirectory& run, const std::string& file) {
  if (!std::filesystem::exists(run.training()) || !std::filesystem::exists(file))
    fail("{}: exists but has no {}; expected a run that this kind of training started, or a new directory", run.root(),
         std::filesystem::path(file).filename().string());
}

}  // namespace qkv
