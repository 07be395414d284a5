// Going on from a run with a longer log: the items that it knows keep their ids and their weights.
#pragma once

#include <string>
#include <vector>

#include "data/interactions.h"
#include "io/run_directory.h"
#include "layers/parameter.h"

namespace qkv {

// The log with these items as ids 0, 1, …, whether it has them or not, and its others after them in their order.
Interactions with_first_items(Interactions log, const std::vector<std::string>& first);

// The weights of a run in place of `parameters`, those of a model of this configuration: of tables of items the first
// rows, of all others the whole. Throws Error, naming the run and the first value of the configuration that differs, if
// that is more than the number of items.
void start_from(const RunDirectory& run, const ModelConfig& config, ParameterList<float>& parameters);

}  // namespace qkv
