// The logit lens of a model with a decoder (qkv/logit_lens.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "model/transformer.h"
#include "qkv/logit_lens.h"

namespace qkv {

// Returns the spelling of each token of the target vocabulary.
using SpellTokens = std::function<std::vector<std::string>(std::span<const int32_t> ids)>;

// source: of a model with an encoder, otherwise empty. target: one sequence, which the decoder reads. Throws Error like
// Transformer::forward, and if a probability is not finite.
LogitLens logit_lens(const Transformer<float>& model, const Packed& source, const Packed& target, Arena& arena,
                     const SpellTokens& spell);

}  // namespace qkv
