// Values that fit the limits of a run: in a short run the learning rate rises for a quarter of the steps and falls at
// the end, where the values of a preset would have it rise for most of them. Values that are given stay.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "qkv/training.h"
#include "train/optimizer/schedule.h"
#include "train/tasks/task.h"

namespace qkv {

inline constexpr double kFittedWarmup = 0.25, kFittedCooldown = 0.3;  // shares of a short run

// Returns about how many steps training takes until its first limit, or 0 without a limit. `batches` is the number of
// batches per epoch, and `seconds` the time of a step.
double expected_steps(const TrainingConfig& training, double batches, double seconds);

// Sets warmup_steps and cooldown for a run of about `steps` steps, unless one of schedule, warmup_steps and cooldown is
// among the names in `given`. The peak of inverse_sqrt belongs to its warm-up: if this becomes shorter by a factor, the
// learning rate falls by its cube root, unless it is given. Returns the names of the values that changed.
std::vector<std::string> fit_to_steps(TrainingConfig& training, const std::set<std::string>& given, double steps);

// Returns the time of a step of the recipe, measured on the first batches of the task, which must be at its start.
// Leaves the task elsewhere.
double seconds_of_step(const Recipe& recipe, Task& task, int64_t ranks);

// Returns the limits and what was chosen for them in one line.
std::string fitted_line(const TrainingConfig& training, const std::vector<std::string>& chosen, double steps);

// Fits a new run of this recipe to its limits. Returns a report in one line; "" if nothing changed.
template <class R>
std::string fit_to_limits(R& recipe, Task& task, int64_t ranks) {
  TrainingConfig& t = recipe.training;
  if (!recipe.fit || (t.max_steps == 0 && t.max_epochs == 0 && t.max_minutes == 0)) return "";
  const double seconds = t.max_minutes > 0 ? seconds_of_step(recipe, task, ranks) : 0;
  task.seek({});
  const double steps = expected_steps(t, task.batches_per_epoch(), seconds);
  std::vector<std::string> chosen = fit_to_steps(t, recipe.given, steps);
  if (t.schedule == Schedule::cosine && t.max_epochs > 0 && !recipe.given.contains("max_steps"))
    chosen.insert(chosen.begin(), "max_steps");
  return chosen.empty() ? "" : fitted_line(t, chosen, steps);
}

// Lets a cosine end after max_epochs if these are given and max_steps, which a preset sets, is not.
template <class R>
void prefer_given_epochs(R& recipe) {
  TrainingConfig& t = recipe.training;
  if (recipe.fit && t.schedule == Schedule::cosine && t.max_epochs > 0 && !recipe.given.contains("max_steps"))
    t.max_steps = 0;
}

}  // namespace qkv
