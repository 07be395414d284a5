// The cosines and sines of rotary positions. All layers of a model share one table, and so do its replicas.
#pragma once

#include <memory>
#include <vector>

#include "core/matrix.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
struct RotaryTable {
  std::vector<Real> numbers;
  Matrix<const Real> angles;  // [max_length, rotated width]

  explicit RotaryTable(const ModelConfig& config);
  RotaryTable(const RotaryTable&) = delete;
  RotaryTable& operator=(const RotaryTable&) = delete;
};

extern template struct RotaryTable<float>;
extern template struct RotaryTable<double>;

}  // namespace qkv
