// The non-linearities and their derivatives, element by element.
#pragma once

#include <cmath>
#include <numbers>

#include "ops/activation.h"
#include "ops/dropout_reference.h"

namespace qkv::reference {

// φ(x)
template <class Real>
Real activation_value(Activation kind, Real x) {
  switch (kind) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu:
      return x / 2 * std::erfc(-x / std::numbers::sqrt2_v<Real>);
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

// φ'(x); that of relu is 0 at 0.
template <class Real>
Real activation_slope(Activation kind, Real x) {
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

}  // namespace qkv::reference
