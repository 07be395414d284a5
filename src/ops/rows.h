// Rows of matrices that are set, copied, gathered, scattered and scaled.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

// All elements of m = value.
template <class Real>
void fill(Matrix<Real> m, Arithmetic<Real> value);

// Returns a matrix of zeros from the arena.
template <class Real>
Matrix<Real> zeros(Arena& arena, int64_t rows, int64_t cols) {
  const Matrix<Real> m = arena.matrix<Real>(rows, cols);
  fill<Real>(m, 0);
  return m;
}

// to = from, of the same shape.
template <class Real>
void copy_rows(Matrix<const Real> from, Matrix<Real> to);

// Row i of `to` = row rows[i] of `from`, which the caller has checked to exist. to: [rows, from.cols].
template <class Real>
void gather_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to);

// Row rows[i] of `to` = row i of `from`: [rows, to.cols]. If a row repeats, the last one counts.
template <class Real>
void scatter_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to);

// Row rows[i] of `to` += row i of `from`: [rows, to.cols], in the order of i. Rows may repeat.
template <class Real>
void scatter_add_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to);

// m = factor · m
template <class Real>
void scale(Matrix<Real> m, Arithmetic<Real> factor);

// Returns the rows that contain infinity or NaN, in increasing order.
template <class Real>
std::vector<int64_t> rows_not_finite(Matrix<const Real> m);

}  // namespace qkv
