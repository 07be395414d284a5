// Losses of a recipe: what training minimizes, in which passes, and the loss on dev data.
#pragma once

#include <cstdint>

#include "core/function_ref.h"
#include "model/layers/context.h"
#include "model/layers/output.h"
#include "qkv/training.h"
#include "ranks/rank_partition.h"

namespace qkv {

inline Objective objective_of(const TrainingConfig& config) { return {config.label_smoothing, config.r_drop}; }

// Returns the context of a training pass over batch number `step`.
inline Context training_context(Arena& arena, const TrainingConfig& config, uint32_t step) {
  return {arena, true, static_cast<uint64_t>(config.seed), step, config.recompute, config.precision == Precision::int8};
}

// Returns the sum of loss_of(batch) over batches of dev data, which are dealt out to ranks. It is added in the order of
// the batches, and all ranks get the same sum.
Loss loss_of_batches(const RankPartition& partition, int64_t batches, FunctionRef<Loss(int64_t batch)> loss_of);

}  // namespace qkv
