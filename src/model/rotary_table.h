// The cosines and sines of rotary positions. All layers of a model share one table, and so do its replicas.
#pragma once

#include <memory>
#include <vector>

#include "core/to_size.h"
#include "ops/attention/rotary.h"

namespace qkv {

template <class Real>
struct RotaryTable {
  std::vector<Real> numbers;
  Matrix<const Real> angles;  // [max_length, rotated width]

  explicit RotaryTable(const ModelConfig& config)
      : numbers(to_size(config.max_length * config.rotated_width())),
        angles(numbers.data(), config.max_length, config.rotated_width()) {
    rotary_table<Real>(config.rotary, {numbers.data(), angles.rows, angles.cols});
  }
  RotaryTable(const RotaryTable&) = delete;
  RotaryTable& operator=(const RotaryTable&) = delete;
};

}  // namespace qkv
