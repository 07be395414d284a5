#include "model/layers/norm.h"

#include "ops/layer_norm.h"

namespace qkv {

template <class Real>
Norm<Real>::Norm(ParameterList<Real>& list, const std::string& name, int64_t d, const ModelConfig& config)
    : gamma_(list.add(name + ".weight", {d}, Init::ones())),
      beta_(config.norm.kind == NormKind::layer ? list.add(name + ".bias", {d}, Init::zeros()) : nullptr),
      centred_(config.norm.kind != NormKind::rms),
      epsilon_(static_cast<Arithmetic<Real>>(config.norm.epsilon)) {}

template <class Real>
Matrix<Real> Norm<Real>::forward(Matrix<const Real> x, Context& c, Saved& s) const {
  const Matrix<Real> y = c.arena.matrix<Real>(x.rows, x.cols);
  forward_into(x, y, c, s);
  return y;
}

template <class Real>
void Norm<Real>::forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, Saved& s) const {
  s = {x, centred_ ? c.arena.take<Statistic<Real>>(x.rows) : nullptr, c.arena.take<Statistic<Real>>(x.rows)};
  layer_norm<Real>(x, gamma_->value, beta_ ? beta_->value : nullptr, epsilon_, y, s.mean, s.rstd);
  c.probed("norm", y);
}

template <class Real>
void Norm<Real>::backward(Matrix<Real> gradient, Context& c, const Saved& s) const {
  layer_norm_backward<Real>(gradient, s.x, gamma_->value, s.mean, s.rstd, gradient, gamma_->gradient,
                            beta_ ? beta_->gradient : nullptr, c.arena);
  c.probed("norm", gradient, Pass::backward);
  for (const Parameter<Real>* p : {gamma_, beta_})
    if (p) c.probed_gradient("norm", Matrix<Statistic<Real>>(p->gradient, 1, p->size()));
}

QKV_FOR_ELEMENTS(template class Norm);

}  // namespace qkv
