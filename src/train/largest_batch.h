// Finds the largest batch that fits into a given amount of memory, by rehearsals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "qkv/train.h"
#include "train/tasks/evaluator.h"

namespace qkv {

// Returns the largest n in [least, most] with bytes(n) <= limit, or a number at most 64 below it. bytes must increase
// with n, may return nothing if it is above the limit, and must return a value for `least`. A few calls are enough if
// it is close to linear.
int64_t largest_that_fits(int64_t least, int64_t most, size_t limit,
                          const std::function<std::optional<size_t>(int64_t)>& bytes);

// Returns the largest batch_tokens, at most `most`, with which weights, gradients, optimizer, evaluation and
// activations take at most `memory` bytes. `longest` is the number of tokens of the longest sequence. Throws Error,
// naming the memory needed, if a batch of this one sequence does not fit.
int64_t fit_batch_tokens(const Recipe& recipe, int64_t longest, int64_t most, Evaluator& evaluator, size_t memory);

}  // namespace qkv
