#include "model/rotary_table.h"

#include "core/to_size.h"
#include "ops/rotary.h"

namespace qkv {
namespace {

template <class Real>
Matrix<const Real> fill_angles(const ModelConfig& config, const RotaryConfig& rotary, std::vector<Real>& numbers) {
  const int64_t width = config.rotated_width();
  numbers.resize(to_size(config.max_length * width));
  const Matrix<Real> table(numbers.data(), config.max_length, width);
  rotary_table<Real>(rotary, table);
  return table;
}

}  // namespace

template <class Real>
RotaryTable<Real>::RotaryTable(const ModelConfig& config)
    : angles(fill_angles(config, config.rotary, numbers)), local(angles) {
  if (config.rotary.local_base > 0) local = fill_angles(config, {.base = config.rotary.local_base}, local_numbers);
}

template struct RotaryTable<float>;
template struct RotaryTable<double>;

}  // namespace qkv
