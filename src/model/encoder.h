// The encoder: N layers of self-attention and feed-forward, each inside a residual connection with a norm.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/residual.h"

namespace qkv {

template <class Real>
class EncoderLayer {
 public:
  struct Saved {
    typename MultiHeadAttention<Real>::Saved self_attention;
    typename FeedForward<Real>::Saved feed_forward;
    typename Residual<Real>::Saved residual_1, residual_2;
  };

  EncoderLayer(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites);

  // x: [N, d] -> [N, d]; `self` says where each sequence lies.
  Matrix<Real> forward(Matrix<const Real> x, const Sequences& self, Context& c, Saved& s) const;
  void backward(Matrix<Real> gradient, const Sequences& self, Context& c, const Saved& s) const;  // in place

  const MultiHeadAttention<Real>& self_attention() const { return self_attention_; }

 private:
  MultiHeadAttention<Real> self_attention_;
  Residual<Real> residual_1_;
  FeedForward<Real> feed_forward_;
  Residual<Real> residual_2_;
};

template <class Real>
class Encoder {
 public:
  struct Saved {
    std::span<typename EncoderLayer<Real>::Saved> layers;  // in the arena; not set if recomputed
    std::span<Matrix<const Real>> inputs;                  // of the layers, [N, d]
    typename Norm<Real>::Saved norm;
  };

  Encoder(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites);

  Matrix<Real> forward(Matrix<Real> x, const Sequences& self, Context& c, Saved& s) const;
  void backward(Matrix<Real> gradient, const Sequences& self, Context& c, const Saved& s) const;  // in place

  const std::deque<EncoderLayer<Real>>& layers() const { return layers_; }

 private:
  std::deque<EncoderLayer<Real>> layers_;
  std::optional<Norm<Real>> norm_;
};

extern template class EncoderLayer<float>;
extern template class EncoderLayer<double>;
extern template class Encoder<float>;
extern template class Encoder<double>;

}  // namespace qkv
