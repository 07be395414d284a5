// The largest batch that a given amount of memory holds, found by rehearsals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "qkv/train.h"
#include "train/evaluator.h"

namespace qkv {

// The largest n in [least, most] with bytes(n) <= limit, to within 64 below it. bytes rises with n, and gives nothing
// where it is above the limit; bytes(least) is there. Calls it a few times where it rises evenly.
int64_t largest_that_fits(int64_t least, int64_t most, size_t limit,
                          const std::function<std::optional<size_t>(int64_t)>& bytes);

// The batch_tokens with which weights, gradients, optimiser, evaluation and activations take at most `memory` bytes, no
// more than `most`. `longest`: tokens of the longest sequence. Throws Error, naming the least that is wanted, where a
// batch of that one sequence does not fit.
int64_t fit_batch_tokens(const Recipe& recipe, int64_t longest, int64_t most, Evaluator& evaluator, size_t memory);

}  // namespace qkv
