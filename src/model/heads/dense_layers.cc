#include "model/heads/dense_layers.h"

#include "core/fail.h"
#include "ops/dense_activation.h"

namespace qkv {
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
    dense_activation(activations_[i], h);
  }
  return h;
}

}  // namespace qkv
