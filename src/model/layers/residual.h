// The residual connection around a sublayer f, with its norm and dropout:
//   post-norm (the paper)  y = norm(x + dropout(f(x)))
//   pre-norm               y = x + dropout(f(norm(x)))
//   query-norm (SASRec)    y = n + dropout(f(n)), n = norm(x)
//   branch (OLMo 2)        y = x + dropout(norm(f(x)))
//   sandwich (Gemma 2)     y = x + dropout(norm_2(f(norm_1(x))))
// A layer whose sublayers run in parallel uses the parts of pre-norm one by one.
#pragma once

#include <optional>
#include <string>

#include "core/device.h"
#include "core/function_ref.h"
#include "model/layers/norm.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Residual {
 public:
  struct Saved {
    typename Norm<Real>::Saved norm, branch_norm;
  };

  // The norms are NAME_norm, and NAME_branch_norm for the one of f's result. In pre-norm, `has_norm` may be false: the
  // sublayer then reads x, or the normalized input of another one.
  Residual(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites,
           bool has_norm = true);

  // The input of f: x, or norm(x) where the norm comes first.
  Matrix<const Real> input(Matrix<const Real> x, Context& c, Saved& s) const;
  // x + dropout(f), in place of f.
  Matrix<Real> add(Matrix<const Real> x, Matrix<Real> f, Context& c) const;

  // Returns y; f maps [N, d] to [N, d] from the arena.
  using Sublayer = FunctionRef<Matrix<Real>(Matrix<const Real>)>;
  Matrix<Real> forward(Matrix<const Real> x, Context& c, Saved& s, Sublayer f) const;

  // The gradients of input and add, for pre-norm: df = dropout(dy); `gradient` is that of norm(x) and becomes that of
  // x.
  void add_backward(Matrix<const Real> dy, Context& c, Matrix<Real> df) const;
  void input_backward(Matrix<Real> gradient, Context& c, const Saved& s) const;

  // In place: `gradient` is dy and becomes dx. f_backward(df, dx, accumulate) assigns the gradient of f's input to dx,
  // which may be df, or adds it to dx if `accumulate`.
  using SublayerBackward = FunctionRef<void(Matrix<const Real> df, Matrix<Real> dx, bool accumulate)>;
  void backward(Matrix<Real> gradient, Context& c, const Saved& s, SublayerBackward f_backward) const;

 private:
  std::optional<Norm<Real>> norm_, branch_norm_;
  NormPosition position_;
  double p_;
  uint32_t site_;
};

QKV_FOR_ELEMENTS(extern template class Residual);

}  // namespace qkv
