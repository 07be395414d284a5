// The vectors of items, which are the rows E[v] of the output layer, and the cosines between them:
//   cos(v, w) = E[v] · E[w] / (|E[v]| |E[w]|), and 0 for a vector of zeros
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer.h"
#include "ops/best_tokens.h"

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

}  // namespace qkv
