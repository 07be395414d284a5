// Draws a token at random.
#pragma once

#include <span>
#include <vector>

#include "core/random.h"
#include "decode/restrictions.h"

namespace qkv {

// The source of a hypothesis's draws: a function of the seed, the source's ids and the number of the hypothesis.
Random sampling_random(uint64_t seed, std::span<const int32_t> source, int64_t hypothesis);

// A token drawn as SamplingOptions says; −1 where none may come, or the model gives no number. Takes one number of
// `random`.
int32_t sample(const NextToken& next, const SamplingOptions& options, Random& random);

}  // namespace qkv
