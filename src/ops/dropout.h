// Dropout, y = dropout(x), and the residual connection with dropout, y = x + dropout(f). "Attention Is All You Need",
// section 5.4 (residual dropout); Srivastava et al., "Dropout" (2014).
#pragma once

#include "core/random.h"
#include "qkv/dropout.h"
#include "qkv/matrix.h"

namespace qkv {

// Returns Dropout::keeps(row, col). Kernels of a GPU call it, too.
constexpr bool is_kept(const Dropout& drop, int64_t row, int64_t col) {
  if (!drop.active()) return true;
  const uint32_t group = static_cast<uint32_t>(col / 128), place = static_cast<uint32_t>(col % 128);
  const uint32_t l = place % 16, word = place / 32, half = place / 16 % 2;
  const PhiloxWords bits = philox({16 * group + l, static_cast<uint32_t>(row), drop.site, drop.step}, drop.seed);
  return (bits[word] >> (16 * half) & 0xFFFF) >= drop.threshold();
}

// y = dropout(x). x, y: [rows, cols]; y is assigned and may be x. Backward is the same function: dx = dropout(dy).
template <class Real>
void dropout(Matrix<const Real> x, const Dropout& drop, Matrix<Real> y);

// Residual connection: y = x + dropout(f). All are [rows, cols]; y is assigned and may be x or f. Backward: dx = dy and
// df = dropout(dy).
template <class Real>
void add_dropout(Matrix<const Real> x, Matrix<const Real> f, const Dropout& drop, Matrix<Real> y);

}  // namespace qkv
