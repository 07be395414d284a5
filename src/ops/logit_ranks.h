// The ranks of given logits in each row of X Wᵀ + b, together with the k largest, in one pass over W. Each block of
// logits is read while it is in the cache and is not kept, so memory does not grow with W.
#pragma once

#include <cstdint>
#include <span>

#include "ops/top_k_logits.h"

namespace qkv {

// Changes of the logits of each row before they are read.
struct LogitChanges {
  HiddenTokens hidden = {};  // as in top_k_logits: their logits become −∞, also after an addition
  // Numbers that are added to logits, by token in strictly increasing order; empty if no row has any.
  std::span<const std::span<const ScoredToken>> added = {};
};

// Outputs of logit_ranks, and the logits to rank. A threshold of +∞ may fill unused columns.
struct LogitRanks {
  Matrix<const float> thresholds;  // [N, T]
  Matrix<int64_t> not_below;       // [N, T], assigned: number of logits y of the row for which y < threshold is false
  TopKLogits best;                 // [N, k], assigned as by top_k_logits
};

// X: [N, in]; W: [V, in]; b: [V] or null; k ≥ 1. Logits have the same bits as those of row_linear. NaN, as a logit or
// a threshold, is not below and has nothing below it.
void logit_ranks(Matrix<const float> X, Matrix<const float> W, const float* b, const LogitChanges& changes,
                 const LogitRanks& ranks, Arena& scratch);
void logit_ranks(Matrix<const float> X, const Int8Matrix& W, const float* b, const LogitChanges& changes,
                 const LogitRanks& ranks, Arena& scratch);

}  // namespace qkv
