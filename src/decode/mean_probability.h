// log p of an ensemble: log(1/K Σ_k softmax(logits_k)).
#pragma once

#include <span>

#include "core/matrix.h"

namespace qkv {

// logits: [N, V] of each of K ≥ 1 models; they are overwritten, and the result lies where the first are.
Matrix<float> log_mean_probability(std::span<const Matrix<float>> logits);

}  // namespace qkv
