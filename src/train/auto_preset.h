// The preset "auto": values of a recipe that are chosen by the shape of the log, and what they require.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/log/log_shape.h"
#include "qkv/recommendation.h"

namespace qkv {

struct FittedRecipe {
  RecommendationRecipe recipe;
  std::vector<std::string> chosen;  // names of the values that were chosen

  std::string line() const;  // "chosen: max_length 50, batch_tokens 2048, …"
};

// Chooses the values that depend on the log, except those that are set: named in recipe.given, or different from the
// preset "auto". docs/recommend.md gives the reason for each rule.
FittedRecipe fit_to_log(const RecommendationRecipe& recipe, const LogShape& log);

// Returns the steps between two evaluations: the fewest whole epochs that have 60 steps, but at most 1,000 steps.
int64_t fitting_interval(int64_t steps_per_epoch);

// Returns what sparse updates (gradients and steps of Adam for the items of a batch only) require and the recipe lacks,
// or nothing. has_features: whether items have features.
std::string_view missing_for_sparse_updates(const RecommendationRecipe& recipe, bool has_features);

// Suggests what to change in a recipe whose model is below a baseline.
std::string advice(const RecommendationRecipe& recipe, const LogShape& log);

// Returns the recipe of a resumed run: that of the run, changed by the values that are set in `recipe`. max_minutes,
// and max_steps unless a cosine ends there, are those of `recipe`.
RecommendationRecipe with_saved(const RecommendationRecipe& recipe, const RecommendationRecipe& saved);

}  // namespace qkv
