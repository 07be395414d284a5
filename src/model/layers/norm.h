// Layer normalization or RMSNorm, with its parameters γ (weight) and β (bias).
#pragma once

#include <string>

#include "core/device.h"
#include "model/layers/context.h"
#include "model/layers/parameter.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Norm {
 public:
  struct Saved {
    Matrix<const Real> x;                             // [N, d]
    Statistic<Real>*mean = nullptr, *rstd = nullptr;  // [N]; RMSNorm has no mean
  };

  // d: the width of a row.
  Norm(ParameterList<Real>& list, const std::string& name, int64_t d, const ModelConfig& config);

  Matrix<Real> forward(Matrix<const Real> x, Context& c, Saved& s) const;
  // y may be x if no backward follows.
  void forward_into(Matrix<const Real> x, Matrix<Real> y, Context& c, Saved& s) const;

  // In place: `gradient` is dy and becomes dx. Adds to the gradients of the parameters.
  void backward(Matrix<Real> gradient, Context& c, const Saved& s) const;

 private:
  const Parameter<Real>*gamma_, *beta_;  // [d]; beta may be null
  bool centred_;
  Arithmetic<Real> epsilon_;
};

QKV_FOR_ELEMENTS(extern template class Norm);

}  // namespace qkv
