// The residual connection around a sublayer f, with its norm and dropout:
//   post-norm (the paper)  y = norm(x + dropout(f(x)))
//   pre-norm               y = x + dropout(f(norm(x)))
//   query-norm (SASRec)    y = n + dropout(f(n)), n = norm(x)
// A layer whose sublayers run in parallel uses the parts of pre-norm one by one.
#pragma once

#include <optional>
#include <string>

#include "layers/norm.h"
#include "ops/dropout.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Residual {
 public:
  using Saved = typename Norm<Real>::Saved;

  // Without a norm of its own the sublayer reads the normalized input of another one.
  Residual(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites,
           bool has_norm = true)
      : position_(config.norm.position), p_(config.dropout.residual), site_(sites.next()) {
    if (has_norm) norm_.emplace(list, name, config.d_model, config);
  }

  // The input of f: x, or norm(x) where the norm comes first.
  Matrix<const Real> input(Matrix<const Real> x, Context& c, Saved& s) const {
    return position_ == NormPosition::post ? x : Matrix<const Real>(norm_->forward(x, c, s));
  }
  // x + dropout(f), in place of f.
  Matrix<Real> add(Matrix<const Real> x, Matrix<Real> f, Context& c) const {
    add_dropout<Real>(x, f, c.dropout(p_, site_), f);
    return f;
  }

  // Returns y; f maps [N, d] to [N, d] from the arena.
  template <class F>
  Matrix<Real> forward(Matrix<const Real> x, Context& c, Saved& s, F&& f) const {
    if (position_ == NormPosition::post) return norm_->forward(add(x, f(x), c), c, s);
    const Matrix<const Real> n = input(x, c, s);
    return add(position_ == NormPosition::pre ? x : n, f(n), c);
  }

  // The gradients of input and add, for pre-norm: df = dropout(dy); `gradient` is that of norm(x) and becomes that of
  // x.
  void add_backward(Matrix<const Real> dy, Context& c, Matrix<Real> df) const {
    dropout<Real>(dy, c.dropout(p_, site_), df);
  }
  void input_backward(Matrix<Real> gradient, Context& c, const Saved& s) const { norm_->backward(gradient, c, s); }

  // In place: `gradient` is dy and becomes dx. f_backward(df, dx, accumulate) assigns the gradient of f's input to dx,
  // which may be df, or adds it to dx when `accumulate`.
  template <class F>
  void backward(Matrix<Real> gradient, Context& c, const Saved& s, F&& f_backward) const {
    const Arena::Scope scope(c.arena);
    const Matrix<Real> d = c.arena.matrix<Real>(gradient.rows, gradient.cols);
    if (position_ == NormPosition::post) norm_->backward(gradient, c, s);
    dropout<Real>(gradient, c.dropout(p_, site_), d);
    if (position_ == NormPosition::pre) {
      f_backward(d, d, false);
      norm_->backward(d, c, s);
      add_dropout<Real>(gradient, d, Dropout{}, gradient);
    } else {
      f_backward(d, gradient, true);
      if (position_ == NormPosition::query) norm_->backward(gradient, c, s);
    }
  }

 private:
  std::optional<Norm<Real>> norm_;
  NormPosition position_;
  double p_;
  uint32_t site_;
};

}  // namespace qkv
