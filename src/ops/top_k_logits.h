// The k largest logits of each row of X Wᵀ + b, in one pass over W. Each block of logits is read while it is in the
// cache and is not kept, so memory does not grow with W. Some tokens, and logits above a limit, may be left out.
#pragma once

#include <cstdint>
#include <span>

#include "ops/best_tokens.h"
#include "ops/row_linear.h"

namespace qkv {

// Outputs of top_k_logits: [N, k], largest first, and their columns. Equal logits are ordered by column. Unused entries
// have logit −∞ and token −1. NaN and −∞ are never included.
struct TopKLogits {
  Matrix<float> logits;
  Matrix<int32_t> tokens;
};

// The tokens that each row hides, in increasing order; empty if no row hides any.
using HiddenTokens = std::span<const std::span<const int32_t>>;

// The tokens that each row leaves out.
struct LogitFilter {
  HiddenTokens hidden = {};
  std::span<const float> limits = {};  // [N], or empty: logits above the limit of their row are left out
};

// Assigns best. X: [N, in]; W: [V, in]; b: [V] or null; k ≥ 1. Logits have the same bits as those of row_linear.
void top_k_logits(Matrix<const float> X, Matrix<const float> W, const float* b, const LogitFilter& filter,
                  const TopKLogits& best, Arena& scratch);
void top_k_logits(Matrix<const float> X, const Int8Matrix& W, const float* b, const LogitFilter& filter,
                  const TopKLogits& best, Arena& scratch);

// Writes the tokens of a heap to row n of best, best first. Afterwards the heap is sorted and no longer a heap.
void write_best(const TokenHeap& heap, const TopKLogits& best, int64_t n);

}  // namespace qkv
