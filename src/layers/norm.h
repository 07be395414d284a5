// LayerNorm with its parameters γ (weight) and β (bias).
#pragma once

#include <string>

#include "layers/context.h"
#include "layers/parameter.h"
#include "ops/layer_norm.h"

namespace qkv {

template <class Real>
class Norm {
 public:
  struct Saved {
    Matrix<const Real> x;                   // [N, d]
    Real *mean = nullptr, *rstd = nullptr;  // [N]
  };

  Norm(ParameterList<Real>& list, const std::string& name, int64_t d, double epsilon)
      : gamma_(list.add(name + ".weight", {d}, Init::ones())),
        beta_(list.add(name + ".bias", {d}, Init::zeros())),
        epsilon_(static_cast<Real>(epsilon)) {}

  Matrix<Real> forward(Matrix<const Real> x, Context& c, Saved& s) const {
    s = {x, c.arena.take<Real>(x.rows), c.arena.take<Real>(x.rows)};
    const Matrix<Real> y = c.arena.matrix<Real>(x.rows, x.cols);
    layer_norm<Real>(x, gamma_->value, beta_->value, epsilon_, y, s.mean, s.rstd);
    return y;
  }

  // In place: dy becomes dx.
  void backward(Matrix<Real> gradient, Context& c, const Saved& s) const {
    layer_norm_backward<Real>(gradient, s.x, gamma_->value, s.mean, s.rstd, gradient, gamma_->gradient, beta_->gradient,
                              c.arena);
  }

 private:
  const Parameter<Real>*gamma_, *beta_;  // [d]
  Real epsilon_;
};

}  // namespace qkv
