// Activation patching of a model with a decoder (qkv/patching.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "qkv/patching.h"

namespace qkv {

// Two texts of the same length, and the tokens that answer them; none: the most probable ones.
struct PatchedTexts {
  std::vector<int32_t> clean, corrupted;  // sources, if the model has an encoder
  std::optional<int32_t> answer = {}, wrong = {};
  std::vector<int32_t> target = {};  // what the decoder of such a model reads
};

// Throws Error, with the tokens, unless the texts have the same number of tokens, at least one.
void check_patched_texts(const std::vector<std::string>& clean, const std::vector<std::string>& corrupted);

// The numbers of Patching, without tokens as text. On return `texts` has the tokens that were measured; wrong is none
// if log p(answer) was. The texts have been checked. Throws Error for a part or a stack that the model lacks, and if
// the scores of the texts are equal.
Patching patch_activations(const Transformer<float>& model, PatchedTexts& texts, PatchedPart part, PatchedStack stack,
                           Arena& arena);

}  // namespace qkv
