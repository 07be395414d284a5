// LayerNorm, or RMSNorm, with its parameters γ (weight) and β (bias).
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
    Real *mean = nullptr, *rstd = nullptr;  // [N]; no mean of RMSNorm
  };

  // d: the width of its rows.
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
  // y may be x where there is no backward.
  void forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, Saved& s) const {
    s = {x, centred_ ? c.arena.take<Real>(x.rows) : nullptr, c.arena.take<Real>(x.rows)};
    layer_norm<Real>(x, gamma_->value, beta_ ? beta_->value : nullptr, epsilon_, y, s.mean, s.rstd);
  }

  // In place: dy becomes dx.
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
