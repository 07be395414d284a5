// Next-token logits for beam search: the k best of logits = X Wᵀ + b and the log-sum-exp of each row. The logits are
// never stored as a whole: each block is read while it is in the cache. Some tokens may be hidden, that is, excluded
// from the best.
#pragma once

#include <cstdint>
#include <span>

#include "core/device.h"
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

// Returns outputs for N rows, uninitialized.
inline NextTokens make_next_tokens(int64_t N, int64_t k, int64_t hidden, Arena& arena) {
  return {arena.matrix<float>(N, k), arena.matrix<int32_t>(N, k), arena.matrix<float>(N, hidden), arena.take<float>(N),
          arena.take<float>(N)};
}

float log_add_exp(float a, float b);  // returns log(e^a + e^b)

// X: [N, in]; W: [V, in]; b: [V] or null; hidden: distinct tokens in increasing order; cap: of ops/softcap.h, 0
// for none.
void next_tokens(Matrix<const float> X, Matrix<const float> W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch, float cap = 0);
void next_tokens(Matrix<const float> X, const Int8Matrix& W, const float* b, std::span<const int32_t> hidden,
                 const NextTokens& next, Arena& scratch, float cap = 0);

// The same for elements of a device, with results on the host.
template <class T>
void next_tokens(Matrix<const Device<T>> X, Matrix<const Device<T>> W, const Device<T>* b,
                 std::span<const int32_t> hidden, const NextTokens& next, Arena& scratch, float cap = 0);

// Assigns the logits of elements of a device, in float32, to numbers of the host. logits: [N, V]
template <class T>
void logits_to_host(Matrix<const Device<T>> X, Matrix<const Device<T>> W, const Device<T>* b, Matrix<float> logits,
                    Arena& scratch, float cap = 0);

}  // namespace qkv
