// Items that joined the catalogue after training, with vectors from their features.
#pragma once

#include <string>

#include "io/runs/run_kinds.h"

namespace qkv {

// Adds the items of a table that the run lacks, in the order of the table, with the vectors of their features:
//   E[v] = Σ_f G[f] / √n over the n features f that the model knows (train/optimizer/feature_sums.h)
// The table has the columns of the features that the run was trained with. Items without a known feature are skipped.
// Returns a line that reports the counts. Throws Error, naming the file, if the table is invalid, and if the run has no
// features, 8-bit weights or an output layer of its own.
std::string add_new_items(RecommenderRun& run, const RunDirectory& directory, const std::string& path);

}  // namespace qkv
