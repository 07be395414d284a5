// The functions of ops/dense_activation.h, number by number.
#pragma once

#include <cmath>

#include "ops/reference/activation_reference.h"
#include "qkv/text_head.h"

namespace qkv::reference {

inline double dense_value(DenseActivation kind, double x) {
  switch (kind) {
    case DenseActivation::identity:
      return x;
    case DenseActivation::tanh:
      return std::tanh(x);
    case DenseActivation::relu:
      return activation_value(Activation::relu, x);
    case DenseActivation::gelu:
      return activation_value(Activation::gelu, x);
    case DenseActivation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case DenseActivation::silu:
      return activation_value(Activation::silu, x);
  }
  return x;
}

inline double dense_slope(DenseActivation kind, double x) {
  switch (kind) {
    case DenseActivation::identity:
      return 1;
    case DenseActivation::tanh: {
      const double y = std::tanh(x);
      return 1 - y * y;
    }
    case DenseActivation::relu:
      return activation_slope(Activation::relu, x);
    case DenseActivation::gelu:
      return activation_slope(Activation::gelu, x);
    case DenseActivation::sigmoid: {
      const double y = 1 / (1 + std::exp(-x));
      return y * (1 - y);
    }
    case DenseActivation::silu:
      return activation_slope(Activation::silu, x);
  }
  return 1;
}

}  // namespace qkv::reference
