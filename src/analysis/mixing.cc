#include "analysis/mixing.h"

#include <utility>

#include "core/fail.h"
#include "core/fields.h"

namespace qkv {

Shares mean_of_heads(const AttentionKind& kind, size_t layer) {
  Shares mean = Shares::zeros(kind.rows.size(), kind.columns.size());
  const std::vector<AttentionHead>& heads = kind.layers[layer];
  for (const AttentionHead& head : heads)
    for (size_t i = 0; i < head.weights.size(); i++) mean.values[i] += static_cast<double>(head.weights[i]);
  for (double& value : mean.values) value /= static_cast<double>(heads.size());
  return mean;
}

Shares with_residual(const AttentionKind& kind, size_t layer) {
  Shares m = mean_of_heads(kind, layer);
  for (size_t i = 0; i < m.rows; i++) m.at(i, i) += 1;
  for (double& value : m.values) value /= 2;
  return m;
}

AttentionMap without_layers(const AttentionMap& map, AttentionMethod method) {
  const auto [encoder, decoder, cross] = kinds_by_name(map);
  if (cross && (!encoder || !decoder || map.kinds.size() != 3))
    fail("{}: a map with cross-attention must have the kinds encoder, decoder and cross", name_of(method));
  AttentionMap found{map.source, map.target, {}};
  for (const AttentionKind& kind : map.kinds)
    found.kinds.push_back({kind.name, kind.causal, kind.rows, kind.columns, {}, method});
  return found;
}

void add_layer(AttentionKind& to, const Shares& shares) {
  AttentionHead head;
  head.weights.assign(shares.values.begin(), shares.values.end());
  to.layers.push_back({std::move(head)});
}

}  // namespace qkv
