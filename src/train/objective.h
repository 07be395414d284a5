// The training objective of a recipe.
#pragma once

#include "layers/output.h"
#include "qkv/training.h"

namespace qkv {

inline Objective objective_of(const TrainingConfig& config) { return {config.label_smoothing, config.r_drop}; }

}  // namespace qkv
