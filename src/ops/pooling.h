// Pooling of hidden states into one vector for each sequence, and normalization of vectors.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/matrix.h"
#include "qkv/text_head.h"

namespace qkv {

// v_s = the rows offsets[s] … offsets[s + 1] − 1 of h, pooled as qkv::Pooling says; sums are in double precision, in
// the order of the rows. h: [N, d]; offsets: [S + 1], with at least one row in each sequence; v: [S, d] is assigned.
template <class Real>
void pool_rows(Matrix<const Real> h, std::span<const int32_t> offsets, Pooling pooling, Matrix<Real> v);

// Assigns dh: [N, d] from dv: [S, d]. The gradient of a maximum goes to the first row that has it; rows that the
// pooling does not read get 0. `offsets` cover all rows of h.
template <class Real>
void pool_rows_backward(Matrix<const Real> h, std::span<const int32_t> offsets, Pooling pooling, Matrix<const Real> dv,
                        Matrix<Real> dh);

// v_n = v_n / max(‖v_n‖, 10⁻¹²) for each row.
template <class Real>
void normalize_rows(Matrix<Real> v);

// Assigns dv from dy, the gradient of the normalized rows y = v / ‖v‖: dv_n = (dy_n − (y_n · dy_n) y_n) / ‖v_n‖. A row
// whose norm is below 10⁻¹² gets 0. v, dy, dv: [N, d]; dv may be dy.
template <class Real>
void normalize_rows_backward(Matrix<const Real> v, Matrix<const Real> dy, Matrix<Real> dv);

}  // namespace qkv
