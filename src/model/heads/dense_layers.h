// Linear layers after the pooling of an embedder, in inference: v ← φ_i(v W_iᵀ + b_i) for i = 0, 1, …
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/layers/context.h"
#include "model/layers/linear.h"
#include "model/layers/parameter.h"
#include "qkv/embedder.h"

namespace qkv {

struct DenseShape {
  DenseActivation activation = DenseActivation::identity;
  int64_t in = 0, out = 0;
  bool bias = true;
};

class DenseLayers {
 public:
  // Declares and allocates the parameters, all zero: dense.0.weight, dense.0.bias, dense.1.weight, … `shapes` has at
  // least one layer, and each takes the outputs of the one before it.
  explicit DenseLayers(std::span<const DenseShape> shapes);
  DenseLayers(const DenseLayers&) = delete;
  DenseLayers& operator=(const DenseLayers&) = delete;

  ParameterList<float>& parameters() { return parameters_; }
  const ParameterList<float>& parameters() const { return parameters_; }

  int64_t in() const { return in_; }
  int64_t out() const { return layers_.back().out(); }

  // v: [N, in] -> [N, out], from the arena. A row does not depend on the others.
  Matrix<float> forward(Matrix<const float> v, Context& c) const;

 private:
  ParameterList<float> parameters_;
  int64_t in_;
  std::vector<Linear<float>> layers_;
  std::vector<DenseActivation> activations_;
};

}  // namespace qkv
