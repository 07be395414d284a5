// Rows of matrices, element by element: ops/rows.h.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/matrix.h"

namespace qkv::reference {

template <class Real>
void fill(Matrix<Real> m, Real value) {
  for (int64_t n = 0; n < m.rows; n++)
    for (int64_t c = 0; c < m.cols; c++) m(n, c) = value;
}

template <class Real>
void copy_rows(Matrix<const Real> from, Matrix<Real> to) {
  for (int64_t n = 0; n < from.rows; n++)
    for (int64_t c = 0; c < from.cols; c++) to(n, c) = from(n, c);
}

template <class Real>
void gather_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  for (int64_t i = 0; i < to.rows; i++)
    for (int64_t c = 0; c < to.cols; c++) to(i, c) = from(rows[i], c);
}

template <class Real>
void scatter_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  for (int64_t i = 0; i < from.rows; i++)
    for (int64_t c = 0; c < from.cols; c++) to(rows[i], c) = from(i, c);
}

template <class Real>
void scatter_add_rows(Matrix<const Real> from, std::span<const int32_t> rows, Matrix<Real> to) {
  for (int64_t i = 0; i < from.rows; i++)
    for (int64_t c = 0; c < from.cols; c++) to(rows[i], c) += from(i, c);
}

template <class Real>
void scale(Matrix<Real> m, Real factor) {
  for (int64_t n = 0; n < m.rows; n++)
    for (int64_t c = 0; c < m.cols; c++) m(n, c) *= factor;
}

}  // namespace qkv::reference
