// The vectors of items, which are the rows E[v] of the output layer, and the cosines between them:
//   cos(v, w) = E[v] · E[w] / (|E[v]| |E[w]|), and 0 for a vector of zeros
//
// diversify chooses from them by maximal marginal relevance (Carbonell and Goldstein, "The Use of MMR", SIGIR 1998).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer.h"
#include "ops/best_tokens.h"
#include "qkv/matrix.h"

namespace qkv {

class ItemVectors {
 public:
  // Computes the length of each vector. The model must outlive it.
  explicit ItemVectors(const Transformer<float>& model);

  // Returns up to `top` items with the largest cosines to `item`, largest first; ties are in order of id. hidden: items
  // to exclude; allowed: if not null, return only these items. Both are in strictly ascending order. With 8-bit
  // weights, products are those of 8 bits.
  std::vector<ScoredToken> nearest(int32_t item, std::span<const int32_t> hidden, const std::vector<int32_t>* allowed,
                                   int64_t top, Arena& arena) const;

  // Returns the vectors of these items divided by their lengths, [items, d], from the arena.
  Matrix<float> directions(std::span<const int32_t> items, Arena& arena) const;

 private:
  int64_t items() const { return weight_.shape[0]; }
  int64_t width() const { return weight_.shape[1]; }
  void copy(int64_t item, float* to) const;

  const Parameter<float>& weight_;
  std::vector<float> scale_;  // 1 / |E[v]|, or 0
};

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
