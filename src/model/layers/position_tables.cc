#include "model/layers/position_tables.h"

#include "core/to_size.h"
#include "ops/distance_bias.h"
#include "ops/embedding.h"
#include "ops/rotary.h"
#include "ops/rows.h"

namespace qkv {
namespace {

// Returns the bytes of all tables of a configuration, with room for their alignment.
template <class Real>
size_t bytes_of(const ModelConfig& c) {
  const int64_t numbers =
      c.max_length * ((c.has_sinusoids() ? c.input_width() : 0) + (c.uses_rotary() ? 2 : 0) * c.rotated_width());
  return to_size(numbers + c.input_width() + c.attention.heads) * sizeof(Real) + 1024;
}

template <class Real>
Matrix<const Real> angles_of(const ModelConfig& config, const RotaryConfig& rotary, Arena& memory) {
  const Matrix<Real> table = memory.matrix<Real>(config.max_length, config.rotated_width());
  rotary_table<Real>(rotary, table);
  return table;
}

}  // namespace

template <class Real>
PositionTables<Real>::PositionTables(const ModelConfig& config) : memory_(bytes_of<Real>(config)) {
  const int64_t e = config.input_width();
  const Matrix<Real> added = memory_.matrix<Real>(config.has_sinusoids() ? config.max_length : 1, e);
  if (config.has_sinusoids())
    sinusoidal_positions<Real>(config.positions, added);
  else
    fill<Real>(added, 0);
  added_ = {added.data, config.max_length, e, config.has_sinusoids() ? e : 0};
  if (config.uses_rotary()) {
    angles_ = local_angles_ = angles_of<Real>(config, config.rotary, memory_);
    if (config.rotary.local_base > 0)
      local_angles_ = angles_of<Real>(config, {.base = config.rotary.local_base}, memory_);
  }
  if (config.positions == Positions::alibi) {
    Statistic<Real>* slopes = memory_.take<Statistic<Real>>(config.attention.heads);
    alibi_slopes(config.attention.heads, slopes);
    slopes_ = slopes;
  }
}

QKV_FOR_ELEMENTS(template class PositionTables);

}  // namespace qkv
