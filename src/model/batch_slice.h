// Consecutive sequences of a batch as a batch of their own.
#pragma once

#include <cstdint>

#include "core/batch.h"

namespace qkv {

// Copies sequences [begin, end) with their labels to `slice`, which keeps its memory.
void copy_sequences(const Batch& batch, int64_t begin, int64_t end, Batch& slice);

}  // namespace qkv
