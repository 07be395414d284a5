// Going on from a run with a longer log: the items that it knows keep their ids and their weights.
#pragma once

#include <string>
#include <vector>

#include "data/interactions.h"
#include "io/recommender_run.h"
#include "io/run_directory.h"
#include "layers/parameter.h"

namespace qkv {

// The log with these items as ids 0, 1, …, whether it has them or not, and its others after them in their order.
Interactions with_first_items(Interactions log, const std::vector<std::string>& first);

// The weights of a run in place of `parameters`, those of a model of this recipe: of tables of items the first rows, of
// all others the whole. Throws Error, naming the run's directory and the first value that differs, if that is more than
// the number of items.
void start_from(const std::string& directory, const RecommenderRun& run, const RecommendationRecipe& recipe,
                ParameterList<float>& parameters);

}  // namespace qkv
