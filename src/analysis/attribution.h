// Attribution of log p of each token that a decoder predicts to the tokens that it reads: gradient × input and
// integrated gradients. With x the embeddings of all tokens with their positions, x̄ those of a baseline with the same
// positions, and F(x) = log p of one token:
//   gradient      a_j = (x_j − x̄_j) · ∂F/∂x_j (x)
//   integrated    a_j = (x_j − x̄_j) · ∫_0^1 ∂F/∂x_j (x̄ + α (x − x̄)) dα, by Gauss–Legendre quadrature; Σ_j a_j = F(x) −
//   F(x̄)
// Sundararajan et al., "Axiomatic Attribution for Deep Networks" (2017).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "model/transformer.h"
#include "qkv/attention_map.h"

namespace qkv {

// Nodes and weights of Gauss–Legendre quadrature on [0, 1].
struct Quadrature {
  std::vector<double> nodes, weights;
};
Quadrature gauss_legendre(int64_t points);

// The texts of an attribution, one sequence of each side.
struct AttributedText {
  Packed source, target;           // what the model reads; no source in a decoder-only model
  std::vector<int32_t> predicted;  // the token that follows each token of the target; without the last one: the best
  // The token that takes the place of every token of a side in the baseline; none: embeddings of zeros.
  std::optional<int32_t> source_baseline = {}, target_baseline = {};
};

// Returns the spelling of tokens.
using SpellSide = std::function<std::vector<std::string>(std::span<const int32_t> ids, bool of_source)>;

// Returns the attributions of each predicted token: kinds "decoder" and, with an encoder, "cross". method: gradient or
// integrated. Throws Error for a model with weights of 8 or 4 bits, which have no gradient.
AttentionMap attribution_map(const Transformer<float>& model, const AttributedText& text,
                             const AttributionOptions& options, Arena& arena, const SpellSide& spell);

}  // namespace qkv
