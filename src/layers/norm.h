// Layer normalization or RMSNorm, with its parameters γ (weight) and β (bias).
#pragma once

#include <string>

#include "layers/context.h"
#include "layers/parameter.h"
#include "ops/layer_norm.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Norm {
 public:
  struct Saved {
    Matrix<const Real> x;                   // [N, d]
    Real *mean = nullptr, *rstd = nullptr;  // [N]; RMSNorm has no mean
  };

  // d: the width of a row.
  Norm(ParameterList<Real>& list, const std::string& name, int64_t d, const ModelConfig& config)
      : gamma_(list.add(name + ".weight", {d}, Init::ones())),
        beta_(config.norm.kind == NormKind::layer ? list.add(name + ".bias", {d}, Init::zeros()) : nullptr),
        centred_(config.norm.kind != NormKind::rms),
        epsilon_(static_cast<Real>(config.norm.epsilon)) {}

  Matrix<Real> forward(Matrix<const Real> x, Context& c, Saved& s) const {
    const Matrix<Real> y = c.arena.matrix<Real>(x.rows, x.cols);
    forward_into(x, y, c, s);
    return y;
  }
  // y may be x if no backward follows.
  void forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, Saved& s) const {
    s = {x, centred_ ? c.arena.take<Real>(x.rows) : nullptr, c.arena.take<Real>(x.rows)};
    layer_norm<Real>(x, gamma_->value, beta_ ? beta_->value : nullptr, epsilon_, y, s.mean, s.rstd);
  }

  // In place: `gradient` is dy and becomes dx. Adds to the gradients of the parameters.
  void backward(Matrix<Real> gradient, Context& c, const Saved& s) const {
    layer_norm_backward<Real>(gradient, s.x, gamma_->value, s.mean, s.rstd, gradient, gamma_->gradient,
                              beta_ ? beta_->gradient : nullptr, c.arena);
  }

 private:
  const Parameter<Real>*gamma_, *beta_;  // [d]; beta may be null
  bool centred_;
  Real epsilon_;
};

}  // namespace qkv
