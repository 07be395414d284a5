#include "model/encoder.h"

#include "model/recompute.h"

namespace qkv {

template <class Real>
EncoderLayer<Real>::EncoderLayer(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                                 DropoutSites& sites)
    : self_attention_(list, name + ".self_attention", config, sites),
      residual_1_(list, name + ".self_attention_norm", config, sites),
      feed_forward_(list, name + ".feed_forward", config, sites),
      residual_2_(list, name + ".feed_forward_norm", config, sites) {}

template <class Real>
Matrix<Real> EncoderLayer<Real>::forward(Matrix<const Real> x, const Sequences& self, Context& c, Saved& s) const {
  const Matrix<Real> y = residual_1_.forward(x, c, s.residual_1, [&](Matrix<const Real> h) {
    return self_attention_.forward(h, h, self, Causal::none, c, s.self_attention);
  });
  return residual_2_.forward(y, c, s.residual_2,
                             [&](Matrix<const Real> h) { return feed_forward_.forward(h, c, s.feed_forward); });
}

template <class Real>
void EncoderLayer<Real>::backward(Matrix<Real> gradient, const Sequences& self, Context& c, const Saved& s) const {
  residual_2_.backward(gradient, c, s.residual_2, [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
    feed_forward_.backward(d, dx, accumulate, c, s.feed_forward);
  });
  residual_1_.backward(gradient, c, s.residual_1, [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
    self_attention_.backward(d, dx, accumulate, {}, self, Causal::none, c, s.self_attention);
  });
}

template <class Real>
Encoder<Real>::Encoder(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                       DropoutSites& sites) {
  for (int64_t i = 0; i < config.encoder_layers; i++)
    layers_.emplace_back(list, name + ".layers." + std::to_string(i), config, sites);
  if (config.final_norm) norm_.emplace(list, name + ".norm", config.d_model, config.norm_epsilon);
}

template <class Real>
Matrix<Real> Encoder<Real>::forward(Matrix<Real> x, const Sequences& self, Context& c, Saved& s) const {
  s.layers = c.arena.objects<typename EncoderLayer<Real>::Saved>(layers_.size());
  s.inputs = c.arena.objects<Matrix<const Real>>(layers_.size());
  for (size_t i = 0; i < layers_.size(); i++) {
    s.inputs[i] = x;
    const auto layer = [&] { return layers_[i].forward(x, self, c, s.layers[i]); };
    x = c.recompute ? result_alone<Real>(x, c, layer) : layer();
  }
  return norm_ ? norm_->forward(x, c, s.norm) : x;
}

template <class Real>
void Encoder<Real>::backward(Matrix<Real> gradient, const Sequences& self, Context& c, const Saved& s) const {
  if (norm_) norm_->backward(gradient, c, s.norm);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Arena::Scope scope(c.arena);
    if (c.recompute) layers_[i].forward(s.inputs[i], self, c, s.layers[i]);
    layers_[i].backward(gradient, self, c, s.layers[i]);
  }
}

template class EncoderLayer<float>;
template class EncoderLayer<double>;
template class Encoder<float>;
template class Encoder<double>;

}  // namespace qkv
