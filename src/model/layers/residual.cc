#include "model/layers/residual.h"

#include "ops/dropout.h"

namespace qkv {

template <class Real>
Residual<Real>::Residual(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                         DropoutSites& sites, bool has_norm)
    : position_(config.norm.position), p_(config.dropout.residual), site_(sites.next()) {
  const bool after = position_ == NormPosition::branch || position_ == NormPosition::sandwich;
  if (has_norm && position_ != NormPosition::branch) norm_.emplace(list, name + "_norm", config.d_model, config);
  if (after) branch_norm_.emplace(list, name + "_branch_norm", config.d_model, config);
}

template <class Real>
Matrix<const Real> Residual<Real>::input(Matrix<const Real> x, Context& c, Saved& s) const {
  return position_ == NormPosition::post || !norm_ ? x : Matrix<const Real>(norm_->forward(x, c, s.norm));
}

template <class Real>
Matrix<Real> Residual<Real>::add(Matrix<const Real> x, Matrix<Real> f, Context& c) const {
  c.probed("branch", f);
  add_dropout<Real>(x, f, c.dropout(p_, site_), f);
  c.probed("residual", f);
  return f;
}

template <class Real>
Matrix<Real> Residual<Real>::forward(Matrix<const Real> x, Context& c, Saved& s, Sublayer f) const {
  if (position_ == NormPosition::post) return norm_->forward(add(x, f(x), c), c, s.norm);
  const Matrix<const Real> n = input(x, c, s);
  Matrix<Real> y = f(n);
  if (branch_norm_) y = branch_norm_->forward(y, c, s.branch_norm);
  return add(position_ == NormPosition::query ? n : x, y, c);
}

template <class Real>
void Residual<Real>::add_backward(Matrix<const Real> dy, Context& c, Matrix<Real> df) const {
  dropout<Real>(dy, c.dropout(p_, site_), df);
  c.probed("branch", df, Pass::backward);
}

template <class Real>
void Residual<Real>::input_backward(Matrix<Real> gradient, Context& c, const Saved& s) const {
  norm_->backward(gradient, c, s.norm);
}

template <class Real>
void Residual<Real>::backward(Matrix<Real> gradient, Context& c, const Saved& s, SublayerBackward f_backward) const {
  const Arena::Scope scope(c.arena);
  const Matrix<Real> d = c.arena.matrix<Real>(gradient.rows, gradient.cols);
  if (position_ == NormPosition::post) norm_->backward(gradient, c, s.norm);
  dropout<Real>(gradient, c.dropout(p_, site_), d);
  c.probed("branch", d, Pass::backward);
  if (branch_norm_) branch_norm_->backward(d, c, s.branch_norm);
  if (norm_ && (position_ == NormPosition::pre || position_ == NormPosition::sandwich)) {
    f_backward(d, d, false);
    norm_->backward(d, c, s.norm);
    add_dropout<Real>(gradient, d, Dropout{}, gradient);
  } else {
    f_backward(d, gradient, true);
    if (position_ == NormPosition::query) norm_->backward(gradient, c, s.norm);
  }
  c.probed("residual", gradient, Pass::backward);
}

QKV_FOR_ELEMENTS(template class Residual);

}  // namespace qkv
