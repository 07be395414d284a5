// Log-probabilities of an ensemble: log(1/K Σ_k softmax(logits_k)).
#pragma once

#include <span>

#include "core/matrix.h"

namespace qkv {

// Computes log p. logits: [N, V] for each of K ≥ 1 models. They are overwritten; the result is stored in the first.
Matrix<float> log_mean_probability(std::span<const Matrix<float>> logits);

}  // namespace qkv
