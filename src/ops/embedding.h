// Token embeddings with positions: y_n = √d E[id_n] + P[position_n]. "Attention Is All You Need", sections 3.4 and 3.5.
#pragma once

#include <cstdint>
#include <span>

#include "core/matrix.h"
#include "ops/linear/row_linear.h"
#include "qkv/config.h"

namespace qkv {

// Fills P: [positions, d] as qkv/config.h says for a kind that is not learned; d may be odd for `interleaved` alone.
template <class Real>
void sinusoidal_positions(Positions kind, Matrix<Real> P);

// E: [V, d]; P: [positions, d]; ids, positions: [N], each inside its table (the caller has checked); y: [N, d].
template <class Real>
void embedding(Matrix<const Real> E, std::span<const int32_t> ids, Real scale, Matrix<const Real> P,
               std::span<const int32_t> positions, Matrix<Real> y);

// The same with a table in 8 bits.
void embedding(const Int8Matrix& E, std::span<const int32_t> ids, float scale, Matrix<const float> P,
               std::span<const int32_t> positions, Matrix<float> y);

// y_n += E[id_n]; its backward is that of embedding with a scale of 1.
template <class Real>
void add_embedding(Matrix<const Real> E, std::span<const int32_t> ids, Matrix<Real> y);

// dE[id_n] += scale · dy_n, in the order of n for every row of E, whatever the number of threads.
template <class Real>
void embedding_backward(Matrix<const Real> dy, std::span<const int32_t> ids, Real scale, Matrix<Real> dE);

}  // namespace qkv
