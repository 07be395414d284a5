// Activation functions and their derivatives, element by element: the reference for the kernels, and the float64
// version.
#pragma once

#include <cmath>
#include <numbers>

#include "ops/activation.h"
#include "ops/reference/dropout_reference.h"

namespace qkv::reference {

// The argument u of gelu_tanh.
template <class Real>
constexpr Real tanh_argument(Real x) {
  return std::sqrt(2 / std::numbers::pi_v<Real>) * (x + Real(0.044715) * x * x * x);
}

// φ(x)
template <class Real>
constexpr Real activation_value(Activation kind, Real x) {
  switch (kind) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu:
      return x / 2 * std::erfc(-x / std::numbers::sqrt2_v<Real>);
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu_tanh:
      return x / (1 + std::exp(-2 * tanh_argument(x)));  // (1 + tanh u) / 2 = 1 / (1 + e^−2u)
  }
  return x;
}

// φ'(x); 0 for relu at x = 0.
template <class Real>
constexpr Real activation_slope(Activation kind, Real x) {
  switch (kind) {
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::gelu: {
      const Real density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
      return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2 + x * density;
    }
    case Activation::silu: {
      const Real sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    }
    case Activation::gelu_tanh: {
      const Real sigmoid = 1 / (1 + std::exp(-2 * tanh_argument(x)));
      const Real du = std::sqrt(2 / std::numbers::pi_v<Real>) * (1 + 3 * Real(0.044715) * x * x);
      return sigmoid * (1 + 2 * x * (1 - sigmoid) * du);
    }
  }
  return 1;
}

template <class Real>
void activation(Activation kind, Matrix<const Real> x, const Dropout& drop, Matrix<Real> y, const Block& block) {
  for (int64_t n = block.row_begin; n < block.row_end; n++)
    for (int64_t i = block.col_begin; i < block.col_end; i++)
      y(n, i) = activation_value(kind, x(n, i)) * dropout_factor<Real>(drop, n, i);
}

template <class Real>
void activation_backward(Activation kind, Matrix<const Real> x, Matrix<const Real> dy, const Dropout& drop,
                         Matrix<Real> dx, const Block& block) {
  for (int64_t n = block.row_begin; n < block.row_end; n++)
    for (int64_t i = block.col_begin; i < block.col_end; i++)
      dx(n, i) = activation_slope(kind, x(n, i)) * (dy(n, i) * dropout_factor<Real>(drop, n, i));
}

template <class Real>
void gated_activation(Activation kind, Matrix<const Real> x, const Dropout& drop, Matrix<Real> y) {
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t i = 0; i < y.cols; i++)
      y(n, i) = activation_value(kind, x(n, i)) * x(n, y.cols + i) * dropout_factor<Real>(drop, n, i);
}

template <class Real>
void gated_activation_backward(Activation kind, Matrix<const Real> x, Matrix<const Real> dy, const Dropout& drop,
                               Matrix<Real> dx) {
  for (int64_t n = 0; n < dy.rows; n++)
    for (int64_t i = 0; i < dy.cols; i++) {
      const Real d = dy(n, i) * dropout_factor<Real>(drop, n, i), a = x(n, i), b = x(n, dy.cols + i);
      dx(n, i) = activation_slope(kind, a) * b * d;
      dx(n, dy.cols + i) = activation_value(kind, a) * d;
    }
}

}  // namespace qkv::reference
