#include "analysis/rollout.h"

#include <cstddef>
#include <utility>

#include "analysis/mixing.h"

namespace qkv {
namespace {

Shares identity(size_t n) {
  Shares m = Shares::zeros(n, n);
  for (size_t i = 0; i < n; i++) m.at(i, i) = 1;
  return m;
}

// Adds factor · a b to a sum.
void add_product(Shares& sum, double factor, const Shares& a, const Shares& b) {
  for (size_t i = 0; i < sum.rows; i++)
    for (size_t k = 0; k < a.columns; k++) {
      const double weight = factor * a.at(i, k);
      if (weight == 0) continue;
      for (size_t j = 0; j < sum.columns; j++) sum.at(i, j) += weight * b.at(k, j);
    }
}

// Rolls out self-attention. Returns the last layer's.
Shares roll_out(const AttentionKind& kind, AttentionKind& to) {
  Shares shares = identity(kind.rows.size());
  for (size_t l = 0; l < kind.layers.size(); l++) {
    Shares next = Shares::zeros(shares.rows, shares.columns);
    add_product(next, 1, with_residual(kind, l), shares);
    add_layer(to, shares = std::move(next));
  }
  return shares;
}

// Rolls out self-attention and cross-attention. encoder: the rollout of its last layer.
void roll_out(const AttentionKind& self, const AttentionKind& cross, const Shares& encoder, AttentionKind& to_self,
              AttentionKind& to_cross) {
  Shares target = identity(self.rows.size()), source = Shares::zeros(cross.rows.size(), cross.columns.size());
  for (size_t l = 0; l < self.layers.size(); l++) {
    const Shares mix = with_residual(self, l);
    Shares next_target = Shares::zeros(target.rows, target.columns);
    add_product(next_target, 0.5, mix, target);
    Shares next_source = Shares::zeros(source.rows, source.columns);
    add_product(next_source, 0.5, mix, source);
    add_product(next_source, 0.5, mean_of_heads(cross, l), encoder);
    add_layer(to_self, target = std::move(next_target));
    add_layer(to_cross, source = std::move(next_source));
  }
}

}  // namespace

AttentionMap attention_rollout(const AttentionMap& map) {
  AttentionMap found = without_layers(map, AttentionMethod::rollout);
  const auto from = kinds_by_name(map);
  const auto to = kinds_by_name(found);
  if (from.cross) {
    const Shares of_source = roll_out(*from.encoder, *to.encoder);
    roll_out(*from.decoder, *from.cross, of_source, *to.decoder, *to.cross);
  } else {
    for (size_t k = 0; k < map.kinds.size(); k++) roll_out(map.kinds[k], found.kinds[k]);
  }
  return found;
}

}  // namespace qkv
