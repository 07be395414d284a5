// Warm starts: training on a longer log from the weights of an earlier run, whose items keep their ids.
#pragma once

#include <string>
#include <vector>

#include "data/interactions.h"
#include "io/recommender_run.h"
#include "io/run_directory.h"
#include "layers/parameter.h"

namespace qkv {

// Returns the log with these items as ids 0, 1, …, even those that it does not contain, followed by its other items in
// their order.
Interactions with_first_items(Interactions log, const std::vector<std::string>& first);

// Copies the weights of a run to `parameters` of a model of this recipe: the first rows of tables of items, and all
// other parameters as a whole. Throws Error, naming the run's directory and the first value that differs, if anything
// but the number of items differs.
void start_from(const std::string& directory, const RecommenderRun& run, const RecommendationRecipe& recipe,
                ParameterList<float>& parameters);

}  // namespace qkv
