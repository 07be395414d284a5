// What a search wants of the logits of the next token, logits = X Wᵀ + b: their log-sum-exp and the best of them. The
// logits never exist at once: each block of them is read while it is in the cache. Some tokens may be hidden: they are
// none of the best.
#pragma once

#include <cstdint>
#include <span>

#include "ops/linear/row_linear.h"

namespace qkv {

struct NextTokens {
  // [N, k], the largest first, and their columns: the smaller first where logits are equal, −1 where there are no more.
  Matrix<float> logits;
  Matrix<int32_t> tokens;
  Matrix<float> hidden;       // [N, hidden tokens]: the logits of those
  float* lse = nullptr;       // [N]: log Σ_v e^logit_v over all tokens; NaN where a logit is NaN
  float* lse_seen = nullptr;  // [N]: the same over those that are not hidden
};

float log_add_exp(float a, float b);  // log(e^a + e^b)

// X: [N, in], W: [V, in], b: [V] or null; hidden: tokens in rising order, each once.
void next_tokens(Matrix<const float> X, Matrix<const float> W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch);
void next_tokens(Matrix<const float> X, const Int8Matrix& W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch);

}  // namespace qkv
