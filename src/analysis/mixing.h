// The shares of tokens that the layers of an attention map mix, if a residual connection counts as much as the attention
// that it is around. Abnar and Zuidema, "Quantifying Attention Flow in Transformers" (2020).
#pragma once

#include <cstddef>
#include <vector>

#include "qkv/attention_map.h"

namespace qkv {

// A matrix of shares, row-major.
struct Shares {
  size_t rows = 0, columns = 0;
  std::vector<double> values = {};

  static Shares zeros(size_t rows, size_t columns) { return {rows, columns, std::vector<double>(rows * columns)}; }
  double& at(size_t row, size_t column) { return values[row * columns + column]; }
  double at(size_t row, size_t column) const { return values[row * columns + column]; }
};

// The mean A of the heads of a layer.
Shares mean_of_heads(const AttentionKind& kind, size_t layer);

// (A + I) / 2
Shares with_residual(const AttentionKind& kind, size_t layer);

// The kinds of a map by their names; nullptr: the map has none.
template <class Kind>
struct KindsByName {
  Kind *encoder = nullptr, *decoder = nullptr, *cross = nullptr;
};
template <class Map>
auto kinds_by_name(Map& map) {
  KindsByName<std::remove_reference_t<decltype(map.kinds.front())>> found;
  for (auto& kind : map.kinds)
    (kind.name == "cross" ? found.cross : kind.name == "decoder" ? found.decoder : found.encoder) = &kind;
  return found;
}

// Returns a map of the same texts and kinds without layers. Throws Error for cross-attention without the attention of
// encoder and decoder.
AttentionMap without_layers(const AttentionMap& map, AttentionMethod method);

// Adds a layer with one head to a map.
void add_layer(AttentionKind& to, const Shares& shares);

}  // namespace qkv
