// The position-wise feed-forward network: FFN(x) = dropout(φ(x W_1ᵀ + b_1)) W_2ᵀ + b_2. "Attention Is All You Need",
// section 3.3. With a gate it is dropout(φ(x W_1ᵀ + b_1) ∘ (x W_gateᵀ + b_gate)) W_2ᵀ + b_2: Shazeer, "GLU Variants
// Improve Transformer" (2020).
#pragma once

#include <string>

#include "core/device.h"
#include "model/layers/linear.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class FeedForward {
 public:
  struct Saved {
    Matrix<const Real> x;  // [N, d]
    Matrix<Real> a;        // [N, F]: x W_1ᵀ + b_1; with a gate [N, 2F], the gate to the right
  };

  FeedForward(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites);

  Matrix<Real> forward(Matrix<const Real> x, Context& c, Saved& s) const;
  // Assigns dx, which may be dy, or adds to it if `accumulate`.
  void backward(Matrix<const Real> dy, Matrix<Real> dx, bool accumulate, Context& c, const Saved& s) const;

 private:
  // Returns the memory of the input of W_2: [N, F]. It is not kept: backward computes it again from a, which takes
  // little time next to the products.
  Matrix<Real> place_of_activations(Context& c, const Saved& s) const;
  Epilogue<Real> activation_into(Matrix<Real> hidden, Context& c) const;

  Linear<Real> first_, second_;
  Activation kind_;
  bool gated_;
  double p_;
  uint32_t site_;
};

QKV_FOR_ELEMENTS(extern template class FeedForward);

}  // namespace qkv
