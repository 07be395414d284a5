// Pooling of hidden states into one vector for each sequence, and normalization of vectors.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/embedder.h"
#include "qkv/matrix.h"

namespace qkv {

// v_s = the rows offsets[s] … offsets[s + 1] − 1 of h, pooled as qkv::Pooling says; sums are in double precision, in
// the order of the rows. h: [N, d]; offsets: [S + 1], with at least one row in each sequence; v: [S, d] is assigned.
template <class Real>
void pool_rows(Matrix<const Real> h, std::span<const int32_t> offsets, Pooling pooling, Matrix<Real> v);

// v_n = v_n / max(‖v_n‖, 10⁻¹²) for each row.
template <class Real>
void normalize_rows(Matrix<Real> v);

}  // namespace qkv
