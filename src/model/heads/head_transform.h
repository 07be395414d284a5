// The layer of an encoder between its hidden states and the output layer that predicts masked tokens:
// norm(φ(h Wᵀ + b)). Devlin et al., "BERT" (2019).
#pragma once

#include <cstdint>
#include <string>

#include "core/device.h"
#include "model/layers/context.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/parameter.h"
#include "qkv/config.h"

namespace qkv {

// Returns the width of its outputs, which is that of the output layer: of the embeddings if these are its weight.
inline int64_t width_of_head(const ModelConfig& config) {
  return config.tied_output ? config.input_width() : config.d_model;
}

template <class Real>
class HeadTransform {
 public:
  struct Saved {
    Matrix<const Real> h;  // [N, d]
    Matrix<Real> a, y;     // [N, width]: before and after the activation; one matrix for relu
    typename Norm<Real>::Saved norm;
  };

  HeadTransform(ParameterList<Real>& list, const std::string& name, const ModelConfig& config);

  // h: [N, d] -> [N, width], from the arena.
  Matrix<Real> forward(Matrix<const Real> h, Context& c, Saved& s) const;
  // Overwrites dy. Assigns dh: [N, d], and adds to the gradients of the parameters.
  void backward(Matrix<Real> dy, Matrix<Real> dh, Context& c, const Saved& s) const;

 private:
  Linear<Real> dense_;
  Norm<Real> norm_;
  Activation kind_;
};

QKV_FOR_ELEMENTS(extern template class HeadTransform);

}  // namespace qkv
