// Tables that a model has once and its layers share: rotary positions, and a learned bias of distances.
#pragma once

#include <optional>

#include "model/layers/relative_bias.h"
#include "model/rotary_table.h"
#include "qkv/config.h"

namespace qkv::layers {

template <class Real>
class PositionParts {
 public:
  // `bias_is_causal`: whether the relative bias, if there is one, is that of a causal layer.
  PositionParts(ParameterList<Real>& list, const ModelConfig& config, bool bias_is_causal) {
    if (config.uses_rotary()) rotary_.emplace(config);
    if (config.attention.relative_buckets > 0) relative_.emplace(list, "relative_bias", config, bias_is_causal);
    if (rotary_) angles_ = rotary_->of_layer(config.layer_kind(0));
  }

  const RotaryTable<Real>* rotary() const { return rotary_ ? &*rotary_ : nullptr; }
  const RelativeBias<Real>* relative() const { return relative_ ? &*relative_ : nullptr; }
  Matrix<const Real> angles() const { return angles_; }  // of the first layer

 private:
  std::optional<RotaryTable<Real>> rotary_;
  std::optional<RelativeBias<Real>> relative_;
  Matrix<const Real> angles_;
};

}  // namespace qkv::layers
