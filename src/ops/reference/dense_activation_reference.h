// The functions of ops/dense_activation.h, number by number.
#pragma once

#include <cmath>

#include "ops/reference/activation_reference.h"
#include "qkv/embedder.h"

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

}  // namespace qkv::reference
