// Rotary position embedding (RoPE): pairs of components of each head are rotated by an angle proportional to the
// position, so that the product of a query and a key depends only on their distance. Su et al., "RoFormer" (2021).
#pragma once

#include <cstdint>
#include <span>

#include "qkv/config.h"
#include "qkv/matrix.h"

namespace qkv {

// Fills table: [positions, width] with cosines and sines. With h = width / 2, entry j is factor · cos(p r_j) and entry
// h + j is factor · sin(p r_j), where
//   r_j = γ_j b_j + (1 − γ_j) b_j / scale,   b_j = base^(−2j/width)
// and γ_j, clamped to [0, 1], depends on the scaling:
//   linear  0
//   llama3  (n_j − low) / (high − low), where n_j = context b_j / 2π is the number of turns of pair j
//   yarn    1 − (j − m) / (M − m) with m = ⌊pair(high)⌋ and M = ⌈pair(low)⌉, where
//           pair(n) = width ln(context / 2πn) / (2 ln base) is the pair that makes n turns
template <class Real>
void rotary_table(const RotaryConfig& rates, Matrix<Real> table);

enum class Rotation { forward, back };  // backward of a rotation is the inverse rotation

// Rotates the first `width` components of each head of x: [N, heads · head_width] in place and leaves the others
// unchanged. For j = 0 … h − 1 with h = width / 2, and a the angle of row n's position:
//   (x_j, x_{h+j}) ← (x_j cos a − x_{h+j} sin a, x_j sin a + x_{h+j} cos a)
// Rotation::back rotates by −a. table: [positions, width], width ≤ head_width. positions: [N]; the caller has checked
// that they are inside the table.
template <class Real>
void rotary(Matrix<Real> x, int64_t head_width, std::span<const int32_t> positions, Matrix<const Real> table,
            Rotation turn);

}  // namespace qkv
