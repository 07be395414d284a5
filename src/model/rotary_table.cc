#include "model/rotary_table.h"

#include "core/float64.h"
#include "core/to_size.h"
#include "ops/attention/rotary.h"

namespace qkv {

template <class Real>
RotaryTable<Real>::RotaryTable(const ModelConfig& config)
    : numbers(to_size(config.max_length * config.rotated_width())),
      angles(numbers.data(), config.max_length, config.rotated_width()) {
  rotary_table<Real>(config.rotary, {numbers.data(), angles.rows, angles.cols});
}

template struct RotaryTable<float>;
QKV_FLOAT64(template struct RotaryTable<double>;)

}  // namespace qkv
