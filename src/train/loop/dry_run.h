// Rehearsals of training: they use as much memory as training will, so that the amount is known and the pages are
// present before the first step. Training that needs more than the machine or a control group has is refused there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch.h"
#include "core/function_ref.h"
#include "model/transformer.h"
#include "qkv/train.h"

namespace qkv {

// Returns how many bytes are left for the activations of a step, when the process had `used` bytes before and `fixed`
// are for weights, gradients, optimizer and evaluation. Throws Error if there are none.
size_t room_for_steps(size_t used, size_t fixed);

// Calls f, which rehearses steps of batch_tokens tokens in an arena with the room above, when the process has `taken`
// bytes for all else. Throws Error with the numbers if it does not suffice.
void rehearse_within_memory(size_t taken, int64_t batch_tokens, FunctionRef<void()> f);

// Assigns a batch of `tokens` tokens on each side that the model has, in sequences of `longest` tokens. Tokens of an
// encoder-only model have no labels. Afterwards it has capacity for every batch of training.
void fill_largest_batch(const ModelConfig& model, int64_t tokens, int64_t longest, Batch& batch);

// Uses as much of the arena as average_weights (io/weights/weights.h).
void dry_run_average(const ParameterList<float>& parameters, Arena& arena);

}  // namespace qkv
