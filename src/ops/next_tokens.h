// Next-token logits for beam search: the k best of logits = X Wᵀ + b and the log-sum-exp of each row. The logits are
// never stored as a whole: each block is read while it is in the cache. Some tokens may be hidden, that is, excluded
// from the best.
#pragma once

#include <cstdint>
#include <span>

#include "ops/row_linear.h"

namespace qkv {

// Outputs of next_tokens, all assigned.
struct NextTokens {
  // [N, k], largest first, and their columns. Equal logits are ordered by column. Unused entries are −∞ and −1.
  Matrix<float> logits;
  Matrix<int32_t> tokens;
  Matrix<float> hidden;       // [N, hidden tokens]: the logits of the hidden tokens
  float* lse = nullptr;       // [N]: log Σ_v e^logit_v over all tokens; NaN if a logit is NaN
  float* lse_seen = nullptr;  // [N]: the same over the tokens that are not hidden
};

float log_add_exp(float a, float b);  // returns log(e^a + e^b)

// X: [N, in]; W: [V, in]; b: [V] or null; hidden: distinct tokens in increasing order; cap: of ops/softcap.h, 0
// for none.
void next_tokens(Matrix<const float> X, Matrix<const float> W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch, float cap = 0);
void next_tokens(Matrix<const float> X, const Int8Matrix& W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch, float cap = 0);

}  // namespace qkv
