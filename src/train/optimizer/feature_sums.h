// Embeddings of items with features: E[v] = e[v] + Σ_f G[f] / √n_v over the n_v features f of item v, where e: [V, d]
// belongs to the items and G: [F, d] to the features. The embedding table stores the sums E, so only training knows of
// features. With the gradients de = dE and dG[f] = Σ_v dE[v] / √n_v, the optimizer updates e and G. It applies the
// update of e to E; add_change then applies that of the features.
#pragma once

#include <vector>

#include "data/log/item_features.h"
#include "qkv/matrix.h"

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
  // A sparse matrix by rows.
  struct SparseRows {
    std::vector<int64_t> offsets;
    std::vector<Entry> entries;
  };

  SparseRows of_items_, of_features_;
};

}  // namespace qkv
