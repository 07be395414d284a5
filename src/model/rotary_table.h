// The cosines and sines of rotary positions. The layers of a model share one table, or two if its local layers have
// another base. Replicas of the model share them too.
#pragma once

#include <vector>

#include "core/matrix.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
struct RotaryTable {
  std::vector<Real> numbers, local_numbers;
  Matrix<const Real> angles, local;  // [max_length, rotated width]: of global layers, of local ones

  // kind: ModelConfig::layer_kind of a layer.
  Matrix<const Real> of_layer(char kind) const {
    return kind == 'n' ? Matrix<const Real>{} : kind == 'l' ? local : angles;
  }

  explicit RotaryTable(const ModelConfig& config);
  RotaryTable(const RotaryTable&) = delete;
  RotaryTable& operator=(const RotaryTable&) = delete;
};

extern template struct RotaryTable<float>;
extern template struct RotaryTable<double>;

}  // namespace qkv
