// Linear layers in 8 bits as plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/to_size.h"
#include "ops/cpu/linear/int8_operands.h"
#include "ops/int8_linear.h"
#include "ops/row_linear.h"

namespace qkv::reference {

// Returns the numbers that n numbers become, s round(x / s) with s = max |x| / 127 in each block, ties to even.
template <class X>
std::vector<double> int8_rounded(int64_t n, const X& x) {
  const DepthBlocks blocks{n};
  std::vector<double> rounded;
  for (int64_t block = 0; block < blocks.count(); block++) {
    const int64_t begin = blocks.begin(block), end = blocks.begin(block + 1);
    float largest = 0;
    for (int64_t i = begin; i < end; i++) largest = std::max(largest, std::abs(x(i)));
    const float inverse = largest > kLeastScaled ? 127 / largest : 0;
    for (int64_t i = begin; i < end; i++)
      rounded.push_back(static_cast<double>(std::nearbyint(x(i) * inverse)) * static_cast<double>(largest / 127));
  }
  return rounded;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
  return sum;
}

// C(r, c) += Σ_k left(r, k) right(c, k), both rounded.
template <class Real, class Left, class Right>
void add_int8_product(int64_t depth, const Left& left, const Right& right, Matrix<Real> C) {
  std::vector<std::vector<double>> columns;
  for (int64_t c = 0; c < C.cols; c++) columns.push_back(int8_rounded(depth, [&](int64_t k) { return right(c, k); }));
  for (int64_t r = 0; r < C.rows; r++) {
    const std::vector<double> row = int8_rounded(depth, [&](int64_t k) { return left(r, k); });
    for (int64_t c = 0; c < C.cols; c++) C(r, c) += static_cast<Real>(dot(row, columns[to_size(c)]));
  }
}

template <class Real>
void int8_linear(Matrix<const float> X, Matrix<const float> W, const float* b, Matrix<Real> Y) {
  for (int64_t n = 0; n < Y.rows; n++)
    for (int64_t o = 0; o < Y.cols; o++) Y(n, o) = b ? static_cast<Real>(b[o]) : Real(0);
  add_int8_product(
      X.cols, [&](int64_t n, int64_t i) { return X(n, i); }, [&](int64_t o, int64_t i) { return W(o, i); }, Y);
}

template <class Real>
void int8_linear_backward(Matrix<const float> X, Matrix<const float> W, Matrix<const float> dY,
                          const LinearGradients<Real>& g) {
  for (int64_t n = 0; n < g.dX.rows && !g.accumulate; n++) std::fill_n(g.dX.row(n), g.dX.cols, Real(0));
  add_int8_product(
      W.rows, [&](int64_t n, int64_t o) { return dY(n, o); }, [&](int64_t i, int64_t o) { return W(o, i); }, g.dX);
  if (g.dW.data)
    add_int8_product(
        X.rows, [&](int64_t o, int64_t n) { return dY(n, o); }, [&](int64_t i, int64_t n) { return X(n, i); }, g.dW);
  for (int64_t n = 0; g.db && n < dY.rows; n++)
    for (int64_t o = 0; o < dY.cols; o++) g.db[o] += static_cast<Real>(dY(n, o));
}

}  // namespace qkv::reference
