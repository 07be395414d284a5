#include "model/layers/dense_layers.h"

#include <cmath>

#include "core/fail.h"
#include "core/to_size.h"
#include "ops/reference/activation_reference.h"

namespace qkv {
namespace {

double dense_value(DenseActivation activation, double x) {
  switch (activation) {
    case DenseActivation::identity:
      return x;
    case DenseActivation::tanh:
      return std::tanh(x);
    case DenseActivation::relu:
      return reference::activation_value(Activation::relu, x);
    case DenseActivation::gelu:
      return reference::activation_value(Activation::gelu, x);
    case DenseActivation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case DenseActivation::silu:
      return reference::activation_value(Activation::silu, x);
  }
  return x;
}

}  // namespace

DenseLayers::DenseLayers(std::span<const DenseShape> shapes) : in_(shapes.front().in) {
  for (const DenseShape& shape : shapes) {
    layers_.emplace_back(parameters_, LinearOutputs{{fmt::format("dense.{}", layers_.size()), shape.out}}, shape.in,
                         shape.bias);
    activations_.push_back(shape.activation);
  }
  parameters_.allocate();
}

Matrix<float> DenseLayers::forward(Matrix<const float> v, Context& c) const {
  Matrix<float> h;
  for (size_t i = 0; i < layers_.size(); i++) {
    h = layers_[i].forward(i == 0 ? v : Matrix<const float>(h), c);
    if (activations_[i] == DenseActivation::identity) continue;
    for (int64_t n = 0; n < h.rows; n++)
      for (float& x : std::span(h.row(n), to_size(h.cols)))
        x = static_cast<float>(dense_value(activations_[i], static_cast<double>(x)));
  }
  return h;
}

}  // namespace qkv
