// Items that have features: a row of their table is E[v] = e[v] + Σ_f G[f] / √n_v over the n_v features f of v, where e
// is the item's own and G: [F, d] the features'. The table holds the sums, so that nothing but training knows of this.
// With de = dE and dG[f] = Σ_v dE[v] / √n_v a step of the optimiser changes e and G; what it adds to the table is the
// change of e, and here that of the sums follows.
#pragma once

#include <vector>

#include "core/matrix.h"
#include "data/item_features.h"

namespace qkv {

class FeatureSums {
 public:
  explicit FeatureSums(const ItemFeatures& features);

  // dG[f] += Σ_v dE[v] / √n_v over the items v of f; dE: [V, d], dG: [F, d].
  void add_gradient(Matrix<const float> dE, Matrix<float> dG) const;

  // E[v] += Σ_f (G[f] − before[f]) / √n_v over the features f of v, for the items from `first` on.
  void add_change(Matrix<const float> G, Matrix<const float> before, int64_t first, Matrix<float> E) const;

 private:
  struct Entry {
    int32_t row;
    float weight;
  };
  // Entries of each row of a matrix whose others are 0.
  struct SparseRows {
    std::vector<int64_t> offsets;
    std::vector<Entry> entries;
  };

  SparseRows of_items_, of_features_;
};

}  // namespace qkv
