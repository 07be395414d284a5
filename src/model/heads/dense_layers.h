// Linear layers after the pooling of an embedder: v ← φ_i(v W_iᵀ + b_i) for i = 0, 1, …
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/heads/standalone_head.h"
#include "model/layers/context.h"
#include "model/layers/linear.h"
#include "model/layers/parameter.h"
#include "qkv/text_head.h"

namespace qkv {

template <class Real>
class DenseLayers {
 public:
  struct Saved {
    struct Layer {
      Matrix<const Real> v;  // [N, in]
      Matrix<Real> a;        // [N, out]: before the activation
    };
    std::vector<Layer> layers;
  };

  // Declares the parameters: dense.0.weight, dense.0.bias, dense.1.weight, … Each layer takes the outputs of the one
  // before it.
  DenseLayers(ParameterList<Real>& list, std::span<const DenseShape> shapes);

  bool empty() const { return layers_.empty(); }
  const std::vector<DenseShape>& shapes() const { return shapes_; }
  int64_t in() const { return shapes_.front().in; }  // requires a layer, as does out()
  int64_t out() const { return shapes_.back().out; }

  // v: [N, in] -> [N, out], from the arena; v itself if there are no layers. A row does not depend on the others.
  Matrix<Real> forward(Matrix<Real> v, Context& c, Saved& s) const;
  // Overwrites dy: [N, out]. Returns dv: [N, in], from the arena or dy itself, and adds to the gradients of the
  // parameters.
  Matrix<Real> backward(Matrix<Real> dy, Context& c, const Saved& s) const;

 private:
  std::vector<DenseShape> shapes_;
  std::vector<Linear<Real>> layers_;
};

using StandaloneDense = StandaloneHead<DenseLayers<float>>;

extern template class DenseLayers<float>;
extern template class DenseLayers<double>;

}  // namespace qkv
