// Token embeddings with positional encoding: y_n = √d E[id_n] + P[position_n]. "Attention Is All You Need", sections
// 3.4 and 3.5.
#pragma once

#include <cstdint>
#include <span>

#include "ops/row_linear.h"
#include "qkv/bfloat16.h"
#include "qkv/config.h"
#include "qkv/matrix.h"

namespace qkv {

// Positional encoding: fills P: [positions, d] for a sinusoidal kind, by the formulas in qkv/config.h. Only
// `interleaved` allows an odd d.
template <class Real>
void sinusoidal_positions(Positions kind, Matrix<Real> P);

// y_n = scale · E[id_n] + P[position_n]. E: [V, d]; P: [positions, d]; ids, positions: [N]; y: [N, d] is assigned. The
// caller has checked that ids and positions are inside their tables.
template <class Real>
void embedding(Matrix<const Real> E, std::span<const int32_t> ids, Arithmetic<Real> scale, Matrix<const Real> P,
               std::span<const int32_t> positions, Matrix<Real> y);

// The same with an int8 table.
void embedding(const Int8Matrix& E, std::span<const int32_t> ids, float scale, Matrix<const float> P,
               std::span<const int32_t> positions, Matrix<float> y);

// y_n += E[id_n]. Backward is embedding_backward with scale = 1.
template <class Real>
void add_embedding(Matrix<const Real> E, std::span<const int32_t> ids, Matrix<Real> y);

// dE[id_n] += scale · dy_n. Each row of E sums over n in order, for any number of threads.
template <class Real>
void embedding_backward(Matrix<const Real> dy, std::span<const int32_t> ids, Arithmetic<Real> scale,
                        Matrix<Statistic<Real>> dE);

// y_n = row for each n whose position is 0; zeros if `row` is null. row: [d]; y: [N, d].
template <class Real>
void set_first_tokens(std::span<const int32_t> positions, const Real* row, Matrix<Real> y);

}  // namespace qkv
