// The objective and the passes of training by a recipe.
#pragma once

#include "model/layers/context.h"
#include "model/layers/output.h"
#include "qkv/training.h"

namespace qkv {

inline Objective objective_of(const TrainingConfig& config) { return {config.label_smoothing, config.r_drop}; }

// Returns the context of a training pass over batch number `step`.
inline Context training_context(Arena& arena, const TrainingConfig& config, uint32_t step) {
  return {arena, true, static_cast<uint64_t>(config.seed), step, config.recompute, config.precision == Precision::int8};
}

}  // namespace qkv
