// Rotary positions: pairs of components of every head turn by an angle that grows with the position, so that the
// product of a query and a key depends on how far apart they are alone. Su et al., "RoFormer" (2021).
#pragma once

#include <cstdint>
#include <span>

#include "core/matrix.h"
#include "qkv/config.h"

namespace qkv {

// table: [positions, width], with h = width / 2: factor cos(p r_j) at j and factor sin(p r_j) at h + j, where
//   r_j = γ_j b_j + (1 − γ_j) b_j / scale,  b_j = base^(−2j/width)
// and γ_j, cut to [0, 1], is by the scaling
//   linear  0
//   llama3  (n_j − low) / (high − low),  n_j = context b_j / 2π, the turns of pair j
//   yarn    1 − (j − m) / (M − m),  m = ⌊pair(high)⌋ and M = ⌈pair(low)⌉, the pairs of so many turns,
//           pair(n) = width ln(context / 2πn) / (2 ln base)
template <class Real>
void rotary_table(const RotaryConfig& rates, Matrix<Real> table);

enum class Turn { forward, back };  // backward of a turn is the turn back

// Rotates the first `width` components of each head of x: [N, heads · head_width] in place and leaves the others
// unchanged. With the angle a of row n's position and j = 0 … h − 1, h = width / 2,
// (x_j, x_{h+j}) ← (x_j cos a − x_{h+j} sin a, x_j sin a + x_{h+j} cos a), or the same by −a.
// positions: [N], each inside the table (the caller has checked). table: [positions, width], width ≤ head_width.
template <class Real>
void rotary(Matrix<Real> x, int64_t head_width, std::span<const int32_t> positions, Matrix<const Real> table,
            Turn turn);

}  // namespace qkv
