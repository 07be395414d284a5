// Tables that a model has once and its layers share: those of positions, and a learned bias of distances.
#pragma once

#include <optional>

#include "model/layers/position_tables.h"
#include "model/layers/relative_bias.h"
#include "qkv/config.h"

namespace qkv::layers {

template <class Real>
class PositionParts {
 public:
  // `bias_is_causal`: whether the relative bias, if there is one, is that of a causal layer.
  PositionParts(ParameterList<Real>& list, const ModelConfig& config, bool bias_is_causal) {
    if (has_layer_positions(config)) tables_.emplace(config);
    if (config.attention.relative_buckets > 0) relative_.emplace(list, "relative_bias", config, bias_is_causal);
  }

  const PositionTables<Real>* tables() const { return tables_ ? &*tables_ : nullptr; }
  const RelativeBias<Real>* relative() const { return relative_ ? &*relative_ : nullptr; }

 private:
  std::optional<PositionTables<Real>> tables_;
  std::optional<RelativeBias<Real>> relative_;
};

}  // namespace qkv::layers
