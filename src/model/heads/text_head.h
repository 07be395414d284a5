// The head of an embedder or a classifier that is trained with its model: pooling, then linear layers or the head of
// labels. Computes on the elements of the host.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/heads/classification_head.h"
#include "model/heads/dense_layers.h"
#include "model/layers/context.h"
#include "model/layers/parameter.h"
#include "qkv/config.h"
#include "qkv/text_head.h"

namespace qkv {

// Throws Error, naming the value, unless a model can have this head: it is an encoder or a decoder alone, and with a
// head of labels its token_head is not `dense`, whose parameters have the same names.
void check(const TextHeadConfig& head, const ModelConfig& model);

template <class Real>
class TextHead {
 public:
  struct Saved {
    Matrix<const Real> h;              // [N, d]
    std::span<const int32_t> offsets;  // [sequences + 1]
    typename DenseLayers<Real>::Saved dense;
    typename ClassificationHead<Real>::Saved labels;
  };

  // Declares the parameters: those of the linear layers (dense.0.weight, …), those of the head of labels (head.dense.*,
  // head.norm.*, head.output.*) and temperature: {1}. The config must have been checked, and is not `none`.
  TextHead(ParameterList<Real>& list, const ModelConfig& model, const TextHeadConfig& config, DropoutSites sites);

  const TextHeadConfig& config() const { return config_; }
  int64_t width() const { return width_; }  // of an output: components of a vector, or labels
  // Returns the parameter s, or null without one. It is not used here, but by a loss that reads similarities.
  const Parameter<Real>* temperature() const { return temperature_; }

  // h: [N, d], the hidden states of packed sequences with at least one token each, -> [sequences, width], from the
  // arena. `offsets` must outlive `s`.
  Matrix<Real> forward(Matrix<const Real> h, std::span<const int32_t> offsets, Context& c, Saved& s) const;
  // Overwrites dv: [sequences, width]. Assigns dh: [N, d], and adds to the gradients of the parameters.
  void backward(Matrix<Real> dv, Matrix<Real> dh, Context& c, const Saved& s) const;

 private:
  TextHeadConfig config_;
  int64_t width_;
  DenseLayers<Real> dense_;
  std::optional<ClassificationHead<Real>> labels_;
  const Parameter<Real>* temperature_;
};

extern template class TextHead<float>;
extern template class TextHead<double>;

}  // namespace qkv
