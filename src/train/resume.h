// Whether a command may go on with a run that is there.
#pragma once

#include <string>
#include <vector>

#include "core/fail.h"
#include "io/run_directory.h"
#include "qkv/training.h"

namespace qkv {

// Values that may differ when a run goes on.
inline bool may_differ(const std::string& name, const Recipe& recipe) {
  if (name == "max_steps") return recipe.training.schedule != Schedule::cosine;
  return name == "max_epochs" || name == "max_minutes" || name == "patience" || name == "recompute";
}

// Throws Error, naming the first value that differs and may not.
template <class R>
void check_same(const RunDirectory& run, const R& saved, const R& given) {
  const std::vector<RecipeOption> a = recipe_options(saved), b = recipe_options(given);
  for (size_t i = 0; i < a.size(); i++)
    if (a[i].value != b[i].value && !may_differ(a[i].name, saved))
      fail("{}: the run has {} {}, this command {}; give the same, or another --out", run.root(), a[i].name, a[i].value,
           b[i].value);
}

}  // namespace qkv
