// The residual connection around a sublayer f, with its norm and dropout:
//   post-norm (the paper's)  y = norm(x + dropout(f(x)))
//   pre-norm                 y = x + dropout(f(norm(x)))
//   query-norm (SASRec's)    y = n + dropout(f(n)), n = norm(x)
#pragma once

#include <string>

#include "layers/norm.h"
#include "ops/dropout.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Residual {
 public:
  using Saved = typename Norm<Real>::Saved;

  Residual(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites)
      : norm_(list, name, config.d_model, config),
        position_(config.norm.position),
        p_(config.dropout.residual),
        site_(sites.next()) {}

  // What f gets of x.
  Matrix<const Real> input(Matrix<const Real> x, Context& c, Saved& s) const {
    return position_ == NormPosition::post ? x : Matrix<const Real>(norm_.forward(x, c, s));
  }

  // f takes [N, d] and returns [N, d] from the arena.
  template <class F>
  Matrix<Real> forward(Matrix<const Real> x, Context& c, Saved& s, F&& f) const {
    if (position_ == NormPosition::post) return norm_.forward(add(x, f(x), c), c, s);
    const Matrix<const Real> n = input(x, c, s);
    return add(position_ == NormPosition::pre ? x : n, f(n), c);
  }

  // In place: `gradient` is dy and becomes dx. f_backward(df, dx, accumulate) assigns the gradient of f's input to dx,
  // which may be df, or adds it there.
  template <class F>
  void backward(Matrix<Real> gradient, Context& c, const Saved& s, F&& f_backward) const {
    const Arena::Scope scope(c.arena);
    const Matrix<Real> d = c.arena.matrix<Real>(gradient.rows, gradient.cols);
    if (position_ == NormPosition::post) norm_.backward(gradient, c, s);
    dropout<Real>(gradient, c.dropout(p_, site_), d);
    if (position_ == NormPosition::pre) {
      f_backward(d, d, false);
      norm_.backward(d, c, s);
      add_dropout<Real>(gradient, d, Dropout{}, gradient);
    } else {
      f_backward(d, gradient, true);
      if (position_ == NormPosition::query) norm_.backward(gradient, c, s);
    }
  }

 private:
  Matrix<Real> add(Matrix<const Real> x, Matrix<Real> f, Context& c) const {  // x + dropout(f), in f's place
    add_dropout<Real>(x, f, c.dropout(p_, site_), f);
    return f;
  }

  Norm<Real> norm_;
  NormPosition position_;
  double p_;
  uint32_t site_;
};

}  // namespace qkv
