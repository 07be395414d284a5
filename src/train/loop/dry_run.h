// Rehearsals of training: they use as much memory as training will, so that the amount is known and the pages are
// present before the first step.
#pragma once

#include <cstdint>

#include "core/batch.h"
#include "model/transformer.h"
#include "qkv/train.h"

namespace qkv {

// Runs forward and backward over a batch of config.batch_tokens tokens on each side, in sequences of `longest` tokens.
// Afterwards `batch` has capacity for every batch of training, and the gradients hold arbitrary values.
void dry_run_step(const Transformer<float>& model, const TrainingConfig& config, int64_t longest, Batch& batch,
                  Arena& arena);

// Uses as much of the arena as average_weights (io/weights/weights.h).
void dry_run_average(const ParameterList<float>& parameters, Arena& arena);

}  // namespace qkv
