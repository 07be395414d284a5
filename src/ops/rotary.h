// Rotary positions: pairs of components of every head turn by an angle that grows with the position, so that the
// product of a query and a key depends on how far apart they are alone. Su et al., "RoFormer" (2021).
#pragma once

#include <cstdint>
#include <span>

#include "core/matrix.h"

namespace qkv {

// table: [positions, width], with h = width / 2: cos(p r_j) at j and sin(p r_j) at h + j, r_j = base^(−2j/width) /
// scale. A scale above 1 squeezes longer sequences into the angles of shorter ones: Chen et al., "Extending Context
// Window of Large Language Models via Positional Interpolation" (2023).
template <class Real>
void rotary_table(double base, double scale, Matrix<Real> table);

enum class Turn { forward, back };  // backward of a turn is the turn back

// In place, for every head of `width` columns of x: [N, heads · width] and j = 0 … h − 1, with the angle a of row n's
// position: (x_j, x_{h+j}) ← (x_j cos a − x_{h+j} sin a, x_j sin a + x_{h+j} cos a), or the same by −a.
// positions: [N], each inside the table (the caller has checked).
template <class Real>
void rotary(Matrix<Real> x, std::span<const int32_t> positions, Matrix<const Real> table, Turn turn);

}  // namespace qkv
