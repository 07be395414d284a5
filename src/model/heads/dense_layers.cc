#include "model/heads/dense_layers.h"

#include "core/fail.h"
#include "ops/dense_activation.h"

namespace qkv {

template <class Real>
DenseLayers<Real>::DenseLayers(ParameterList<Real>& list, std::span<const DenseShape> shapes)
    : shapes_(shapes.begin(), shapes.end()) {
  for (const DenseShape& shape : shapes_)
    layers_.emplace_back(list, LinearOutputs{{fmt::format("dense.{}", layers_.size()), shape.out}}, shape.in,
                         shape.bias);
}

template <class Real>
Matrix<Real> DenseLayers<Real>::forward(Matrix<Real> v, Context& c, Saved& s) const {
  s.layers.clear();
  for (size_t i = 0; i < layers_.size(); i++) {
    const Matrix<Real> a = layers_[i].forward(v, c);
    s.layers.push_back({v, a});
    v = c.arena.matrix<Real>(a.rows, a.cols);
    dense_activation<Real>(shapes_[i].activation, a, v);
    c.probed("activation", v);
  }
  return v;
}

template <class Real>
Matrix<Real> DenseLayers<Real>::backward(Matrix<Real> dy, Context& c, const Saved& s) const {
  for (size_t i = layers_.size(); i-- > 0;) {
    dense_activation_backward<Real>(shapes_[i].activation, s.layers[i].a, dy);
    c.probed("activation", dy, Pass::backward);
    const Matrix<Real> dv = c.arena.matrix<Real>(dy.rows, shapes_[i].in);
    layers_[i].backward(s.layers[i].v, dy, dv, c);
    dy = dv;
  }
  return dy;
}

template class DenseLayers<float>;
template class DenseLayers<double>;

}  // namespace qkv
