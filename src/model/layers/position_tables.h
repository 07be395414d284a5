// Tables of positions, which are computed once: sinusoids that are added to embeddings, the cosines and sines of rotary
// positions, and the slopes of ALiBi. The layers of a model share them, and so do its replicas.
#pragma once

#include "core/arena.h"
#include "core/device.h"
#include "qkv/bfloat16.h"
#include "qkv/config.h"
#include "qkv/matrix.h"

namespace qkv {

// The tables that self-attention in a layer reads.
template <class Real>
struct LayerPositions {
  Matrix<const Real> angles = {};           // [max_length, r], of rotary positions (ops/rotary.h); or empty
  const Statistic<Real>* slopes = nullptr;  // [H], of ALiBi; or null
};

template <class Real>
class PositionTables {
 public:
  explicit PositionTables(const ModelConfig& config);
  PositionTables(const PositionTables&) = delete;
  PositionTables& operator=(const PositionTables&) = delete;

  // Returns what is added to the embeddings, [max_length, e]: sinusoids, or one row of zeros with stride 0.
  Matrix<const Real> added() const { return added_; }
  // kind: ModelConfig::layer_kind of a layer.
  LayerPositions<Real> of_layer(char kind) const {
    return {kind == 'n' ? Matrix<const Real>() : kind == 'l' ? local_angles_ : angles_, slopes_};
  }

 private:
  Arena memory_;
  Matrix<const Real> added_, angles_, local_angles_;
  const Statistic<Real>* slopes_ = nullptr;
};

// Whether layers read the tables.
inline bool has_layer_positions(const ModelConfig& config) {
  return config.uses_rotary() || config.positions == Positions::alibi;
}

QKV_FOR_ELEMENTS(extern template class PositionTables);

}  // namespace qkv
