#include "model/decoder.h"

#include <algorithm>

#include "model/recompute.h"

namespace qkv {

template <class Real>
DecoderLayer<Real>::DecoderLayer(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                                 DropoutSites& sites)
    : self_attention_(list, name + ".self_attention", config, sites),
      residual_1_(list, name + ".self_attention_norm", config, sites),
      cross_attention_(list, name + ".cross_attention", config, sites),
      residual_2_(list, name + ".cross_attention_norm", config, sites),
      feed_forward_(list, name + ".feed_forward", config, sites),
      residual_3_(list, name + ".feed_forward_norm", config, sites) {}

template <class Real>
Matrix<Real> DecoderLayer<Real>::forward(Matrix<const Real> x, Matrix<const Real> memory, const Sequences& self,
                                         const Sequences& cross, Context& c, Saved& s) const {
  const Matrix<Real> y = residual_1_.forward(x, c, s.residual_1, [&](Matrix<const Real> h) {
    return self_attention_.forward(h, h, self, Causal::top_left, c, s.self_attention);
  });
  const Matrix<Real> z = residual_2_.forward(y, c, s.residual_2, [&](Matrix<const Real> h) {
    return cross_attention_.forward(h, memory, cross, Causal::none, c, s.cross_attention);
  });
  return residual_3_.forward(z, c, s.residual_3,
                             [&](Matrix<const Real> h) { return feed_forward_.forward(h, c, s.feed_forward); });
}

template <class Real>
void DecoderLayer<Real>::backward(Matrix<Real> gradient, Matrix<Real> dmemory, const Sequences& self,
                                  const Sequences& cross, Context& c, const Saved& s) const {
  residual_3_.backward(gradient, c, s.residual_3, [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
    feed_forward_.backward(d, dx, accumulate, c, s.feed_forward);
  });
  residual_2_.backward(gradient, c, s.residual_2, [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
    cross_attention_.backward(d, dx, accumulate, dmemory, cross, Causal::none, c, s.cross_attention);
  });
  residual_1_.backward(gradient, c, s.residual_1, [&](Matrix<const Real> d, Matrix<Real> dx, bool accumulate) {
    self_attention_.backward(d, dx, accumulate, {}, self, Causal::top_left, c, s.self_attention);
  });
}

template <class Real>
Matrix<Real> DecoderLayer<Real>::step(Matrix<const Real> x, const CachedKeys& self, const CachedKeys& cross,
                                      const Cache& cache, std::span<const int32_t> new_rows, Context& c) const {
  // Each sublayer's memory is the last one's, and so in the cache.
  const auto sublayer = [&](Matrix<const Real> in, const Residual<Real>& residual, auto&& f) {
    return result_alone<Real>(in, c, [&] {
      typename Residual<Real>::Saved s;
      return residual.forward(in, c, s, f);
    });
  };
  const Matrix<Real> y = sublayer(x, residual_1_, [&](Matrix<const Real> h) {
    const Matrix<Real> kv = c.arena.matrix<Real>(h.rows, cache.self.cols);
    self_attention_.keys_values(h, kv, c);
    for (int64_t n = 0; n < kv.rows; n++)
      std::copy_n(kv.row(n), kv.cols, cache.self.row(new_rows[static_cast<size_t>(n)]));
    return self_attention_.attend(h, cache.self, self, c);
  });
  const Matrix<Real> z =
      sublayer(y, residual_2_, [&](Matrix<const Real> h) { return cross_attention_.attend(h, cache.cross, cross, c); });
  return sublayer(z, residual_3_, [&](Matrix<const Real> h) {
    typename FeedForward<Real>::Saved s;
    return feed_forward_.forward(h, c, s);
  });
}

template <class Real>
Decoder<Real>::Decoder(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                       DropoutSites& sites) {
  for (int64_t i = 0; i < config.decoder_layers; i++)
    layers_.emplace_back(list, name + ".layers." + std::to_string(i), config, sites);
  if (config.final_norm) norm_.emplace(list, name + ".norm", config.d_model, config.norm_epsilon);
}

template <class Real>
Matrix<Real> Decoder<Real>::forward(Matrix<Real> x, Matrix<const Real> memory, const Sequences& self,
                                    const Sequences& cross, Context& c, Saved& s) const {
  s.layers = c.arena.objects<typename DecoderLayer<Real>::Saved>(layers_.size());
  s.inputs = c.arena.objects<Matrix<const Real>>(layers_.size());
  s.memory = memory;
  for (size_t i = 0; i < layers_.size(); i++) {
    s.inputs[i] = x;
    const auto layer = [&] { return layers_[i].forward(x, memory, self, cross, c, s.layers[i]); };
    x = c.recompute ? result_alone<Real>(x, c, layer) : layer();
  }
  return norm_ ? norm_->forward(x, c, s.norm) : x;
}

template <class Real>
void Decoder<Real>::backward(Matrix<Real> gradient, Matrix<Real> dmemory, const Sequences& self, const Sequences& cross,
                             Context& c, const Saved& s) const {
  if (norm_) norm_->backward(gradient, c, s.norm);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Arena::Scope scope(c.arena);
    if (c.recompute) layers_[i].forward(s.inputs[i], s.memory, self, cross, c, s.layers[i]);
    layers_[i].backward(gradient, dmemory, self, cross, c, s.layers[i]);
  }
}

template <class Real>
Matrix<Real> Decoder<Real>::step(Matrix<Real> x, const CachedKeys& self, const CachedKeys& cross,
                                 const std::vector<typename DecoderLayer<Real>::Cache>& caches,
                                 std::span<const int32_t> new_rows, Context& c) const {
  for (size_t i = 0; i < layers_.size(); i++)
    x = result_alone<Real>(x, c, [&] { return layers_[i].step(x, self, cross, caches[i], new_rows, c); });
  typename Norm<Real>::Saved s;
  return norm_ ? norm_->forward(x, c, s) : x;
}

template class DecoderLayer<float>;
template class DecoderLayer<double>;
template class Decoder<float>;
template class Decoder<double>;

}  // namespace qkv
