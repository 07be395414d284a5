// Training that needs more memory than the machine or a control group has is refused before the first step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/function_ref.h"

namespace qkv {

// Returns how many bytes are left for the activations of a step, when the process had `used` bytes before and `fixed`
// are for weights, gradients, optimizer and evaluation. Throws Error if there are none.
size_t room_for_steps(size_t used, size_t fixed);

// Calls f, which rehearses steps of batch_tokens tokens in an arena with the room above, when the process has `taken`
// bytes for all else. Throws Error with the numbers if it does not suffice.
void rehearse_within_memory(size_t taken, int64_t batch_tokens, FunctionRef<void()> f);

}  // namespace qkv
