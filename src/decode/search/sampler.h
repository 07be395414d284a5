// Random sampling of tokens.
#pragma once

#include <span>
#include <vector>

#include "core/random.h"
#include "decode/search/restrictions.h"

namespace qkv {

// Returns the random number generator of a hypothesis. It depends only on the seed, the source's ids and the number of
// the hypothesis.
Random sampling_random(uint64_t seed, std::span<const int32_t> source, int64_t hypothesis);

// Draws a token according to the options. Returns −1 if all tokens are excluded, or the model's output is NaN. Uses one
// random number, or none if temperature is 0.
int32_t sample(const NextToken& next, const SamplingOptions& options, Random& random);

}  // namespace qkv
