// Pooling and normalization of one sequence: ops/pooling.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "qkv/matrix.h"
#include "qkv/text_head.h"

namespace qkv::reference {

// v = Σ_n w_n h_n / divisor with the weights w_n = 1, or w_n = n + 1 for rows counted from 0.
template <class Real>
void weighted_sum(Matrix<const Real> h, bool by_place, double divisor, Real* v) {
  std::vector<double> sum(static_cast<size_t>(h.cols));
  for (int64_t n = 0; n < h.rows; n++) {
    const double weight = by_place ? static_cast<double>(n + 1) : 1;
    for (size_t i = 0; i < sum.size(); i++) sum[i] += weight * static_cast<double>(h.row(n)[i]);
  }
  for (size_t i = 0; i < sum.size(); i++) v[i] = static_cast<Real>(sum[i] / divisor);
}

template <class Real>
void column_maximum(Matrix<const Real> h, Real* v) {
  std::copy_n(h.row(0), h.cols, v);
  for (int64_t n = 1; n < h.rows; n++)
    for (int64_t i = 0; i < h.cols; i++) v[i] = std::max(v[i], h(n, i));
}

// h: [N, d], N ≥ 1 -> v: [d]
template <class Real>
void pool(Matrix<const Real> h, Pooling pooling, Real* v) {
  const auto rows = static_cast<double>(h.rows);
  switch (pooling) {
    case Pooling::mean:
      return weighted_sum(h, false, rows, v);
    case Pooling::first:
      return void(std::copy_n(h.row(0), h.cols, v));
    case Pooling::last:
      return void(std::copy_n(h.row(h.rows - 1), h.cols, v));
    case Pooling::max:
      return column_maximum(h, v);
    case Pooling::mean_sqrt_len:
      return weighted_sum(h, false, std::sqrt(rows), v);
    case Pooling::weighted_mean:
      return weighted_sum(h, true, rows * (rows + 1) / 2, v);
  }
}

// dh_n = w_n dv / divisor, with the weights of weighted_sum.
template <class Real>
void weighted_sum_backward(const Real* dv, bool by_place, double divisor, Matrix<Real> dh) {
  for (int64_t n = 0; n < dh.rows; n++) {
    const double weight = by_place ? static_cast<double>(n + 1) : 1;
    for (int64_t i = 0; i < dh.cols; i++) dh(n, i) = static_cast<Real>(weight * static_cast<double>(dv[i]) / divisor);
  }
}

// dh = dv in the given row, and 0 in the others.
template <class Real>
void row_backward(const Real* dv, int64_t row, Matrix<Real> dh) {
  for (int64_t n = 0; n < dh.rows; n++)
    for (int64_t i = 0; i < dh.cols; i++) dh(n, i) = n == row ? dv[i] : 0;
}

// dh = dv in the first row that has the maximum, and 0 in the others, for each column.
template <class Real>
void column_maximum_backward(Matrix<const Real> h, const Real* dv, Matrix<Real> dh) {
  for (int64_t i = 0; i < h.cols; i++) {
    int64_t best = 0;
    for (int64_t n = 1; n < h.rows; n++)
      if (h(n, i) > h(best, i)) best = n;
    for (int64_t n = 0; n < h.rows; n++) dh(n, i) = n == best ? dv[i] : 0;
  }
}

// h: [N, d], dv: [d] -> dh: [N, d]
template <class Real>
void pool_backward(Matrix<const Real> h, Pooling pooling, const Real* dv, Matrix<Real> dh) {
  const auto rows = static_cast<double>(h.rows);
  switch (pooling) {
    case Pooling::mean:
      return weighted_sum_backward(dv, false, rows, dh);
    case Pooling::first:
      return row_backward(dv, 0, dh);
    case Pooling::last:
      return row_backward(dv, h.rows - 1, dh);
    case Pooling::max:
      return column_maximum_backward(h, dv, dh);
    case Pooling::mean_sqrt_len:
      return weighted_sum_backward(dv, false, std::sqrt(rows), dh);
    case Pooling::weighted_mean:
      return weighted_sum_backward(dv, true, rows * (rows + 1) / 2, dh);
  }
}

// v: [d]
template <class Real>
void normalize(Real* v, int64_t d) {
  double squares = 0;
  for (int64_t i = 0; i < d; i++) squares += static_cast<double>(v[i]) * static_cast<double>(v[i]);
  const double norm = std::max(std::sqrt(squares), 1e-12);
  for (int64_t i = 0; i < d; i++) v[i] = static_cast<Real>(static_cast<double>(v[i]) / norm);
}

// v, dy, dv: [d]. dv = (dy − (y · dy) y) / ‖v‖ with y = v / ‖v‖
template <class Real>
void normalize_backward(const Real* v, const Real* dy, Real* dv, int64_t d) {
  double squares = 0, product = 0;
  for (int64_t i = 0; i < d; i++) {
    squares += static_cast<double>(v[i]) * static_cast<double>(v[i]);
    product += static_cast<double>(v[i]) * static_cast<double>(dy[i]);
  }
  const double scale = std::sqrt(squares) < 1e-12 ? 0 : 1 / std::sqrt(squares);
  for (int64_t i = 0; i < d; i++)
    dv[i] =
        static_cast<Real>(scale * (static_cast<double>(dy[i]) - scale * scale * product * static_cast<double>(v[i])));
}

}  // namespace qkv::reference
