// What training takes from the arena at most, found by doing it once: memory is then known, and its pages are there.
#pragma once

#include <cstdint>

#include "data/batch.h"
#include "model/transformer.h"
#include "qkv/train.h"

namespace qkv {

// A pass forward and backward over config.batch_tokens tokens on either side, in sequences of `longest` tokens. `batch`
// gets room for every batch there can be. Gradients are left full of numbers.
void rehearse_step(const Transformer<float>& model, const TrainingConfig& config, int64_t longest, Batch& batch,
                   Arena& arena);

// average_weights
void rehearse_average(const ParameterList<float>& parameters, Arena& arena);

}  // namespace qkv
