// Diversity of a list by maximal marginal relevance (Carbonell and Goldstein, "The Use of MMR", SIGIR 1998).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.h"
#include "ops/best_tokens.h"

namespace qkv {

constexpr int64_t kMostDiverse = 1000;  // largest number of items of a list with diversity

// Returns the number of best items among which the items of a list are chosen.
int64_t candidates_for(int64_t top, double diversity);

// Chooses `top` of the candidates, which are in order of their scores, one after the other: always the one with the
// largest
//   (1 − diversity) · relevance − diversity · (largest cosine to those chosen before, or 0 for the first)
// where the relevance is the score, mapped so that the best candidate has 1 and the worst 0. Ties go to the better
// candidate. directions: [candidates, d], rows of length 1 or 0. diversity: between 0, which keeps the order, and 1.
std::vector<ScoredToken> diversify(std::span<const ScoredToken> candidates, Matrix<const float> directions,
                                   double diversity, int64_t top);

}  // namespace qkv
