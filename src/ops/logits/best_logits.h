// The largest of the logits X Wᵀ + b of every row, in one pass over W: each block of logits is read while it is in the
// cache and leaves only what may be among the best, so that memory does not grow with W. Some tokens may be hidden.
#pragma once

#include <cstdint>
#include <span>

#include "ops/linear/row_linear.h"
#include "ops/logits/best_tokens.h"

namespace qkv {

// [N, k], the largest first, and their columns: the smaller first where logits are equal, −1 where there are no more.
// NaN and −∞ are none of the best.
struct BestLogits {
  Matrix<float> logits;
  Matrix<int32_t> tokens;
};

// Tokens that a row hides, in rising order, for each row; or nothing.
using HiddenTokens = std::span<const std::span<const int32_t>>;

// X: [N, in], W: [V, in], b: [V] or null; 1 ≤ k. Logits have the bits that row_linear gives them.
void best_logits(Matrix<const float> X, Matrix<const float> W, const float* b, HiddenTokens hidden,
                 const BestLogits& best, Arena& scratch);
void best_logits(Matrix<const float> X, const Int8Matrix& W, const float* b, HiddenTokens hidden,
                 const BestLogits& best, Arena& scratch);

// Writes what a heap holds into row n, the best first. The heap is in no order afterwards.
void write_best(const TokenHeap& heap, const BestLogits& best, int64_t n);

}  // namespace qkv
