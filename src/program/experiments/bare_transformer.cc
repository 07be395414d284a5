#include "program/experiments/bare_transformer.h"

#include <cmath>

#include "model/transformer.h"
#include "ops/dropout.h"
#include "ops/rows.h"
#include "program/experiments/small_training.h"

namespace qkv {

template <class Real>
BareTransformer<Real>::BareTransformer(const ModelConfig& config, BareParts parts)
    : config_(config),
      parts_(parts),
      positions_(config),
      table_(list_.add("target_embedding.weight", {config.target_vocab, config.d_model},
                       Init::gaussian(1 / std::sqrt(static_cast<double>(config.d_model))))),
      embedding_(list_, "decoder", table_, config, false, {"gaps", 0}, sites_, positions_),
      output_(table_, nullptr) {
  for (int64_t i = 0; i < config.decoder_layers; i++) add_layer("decoder.layers." + std::to_string(i));
  if (parts.final_norm) norm_.emplace(list_, "decoder.norm", config.d_model, config);
  list_.allocate();
}

template <class Real>
void BareTransformer<Real>::add_layer(const std::string& name) {
  const auto norm = [&](const std::string& of) {
    return parts_.norm ? std::optional<Norm<Real>>(std::in_place, list_, name + of, config_.d_model, config_)
                       : std::nullopt;
  };
  // The braces evaluate in order, so that parameters are declared as in Transformer.
  layers_.push_back(
      BareLayer{{list_, name + ".self_attention", config_, AttentionScope::global, sites_, positions_.of_layer('g')},
                norm(".self_attention_norm"),
                {list_, name + ".feed_forward", config_, sites_},
                norm(".feed_forward_norm")});
}

template <class Real>
template <class Sublayer>
Matrix<Real> BareTransformer<Real>::around(const std::optional<Norm<Real>>& norm, Matrix<Real> x, Context& c,
                                           typename Norm<Real>::Saved& saved, Sublayer&& f) const {
  const Matrix<Real> y = f(norm ? norm->forward(x, c, saved) : x);
  if (parts_.residual) add_dropout<Real>(x, y, Dropout{}, y);
  return y;
}

template <class Real>
template <class SublayerBackward>
void BareTransformer<Real>::around_backward(const std::optional<Norm<Real>>& norm, Matrix<Real> gradient, Context& c,
                                            const typename Norm<Real>::Saved& saved,
                                            SublayerBackward&& f_backward) const {
  const Arena::Scope scope(c.arena);
  const Matrix<Real> d = c.arena.matrix<Real>(gradient.rows, gradient.cols);
  copy_rows<Real>(gradient, d);
  f_backward(d);
  if (norm) norm->backward(d, c, saved);
  if (parts_.residual)
    add_dropout<Real>(gradient, d, Dropout{}, gradient);
  else
    copy_rows<Real>(d, gradient);
}

template <class Real>
Matrix<Real> BareTransformer<Real>::forward(const Packed& text, Context& c, Saved& s) const {
  const VisibleKeys<Real> keys = sequences_of(text, text);
  Matrix<Real> x = embedding_.forward(text.ids, text.positions, text.gaps, c, s.embedding);
  c.positions = text.positions;
  s.layers = c.arena.objects<SavedLayer>(layers_.size());
  for (size_t i = 0; i < layers_.size(); i++) {
    const BareLayer& layer = layers_[i];
    SavedLayer& saved = s.layers[i];
    x = around(layer.attention_norm, x, c, saved.attention_norm, [&](Matrix<const Real> n) {
      return layer.attention.forward(n, n, keys, Causal::top_left, c, saved.attention);
    });
    x = around(layer.feed_forward_norm, x, c, saved.feed_forward_norm,
               [&](Matrix<const Real> n) { return layer.feed_forward.forward(n, c, saved.feed_forward); });
  }
  return x;
}

template <class Real>
void BareTransformer<Real>::backward(const Packed& text, Matrix<Real> gradient, Context& c, const Saved& s) const {
  const VisibleKeys<Real> keys = sequences_of(text, text);
  if (norm_) norm_->backward(gradient, c, s.norm);
  for (size_t i = layers_.size(); i-- > 0;) {
    const BareLayer& layer = layers_[i];
    const SavedLayer& saved = s.layers[i];
    around_backward(layer.feed_forward_norm, gradient, c, saved.feed_forward_norm,
                    [&](Matrix<Real> d) { layer.feed_forward.backward(d, d, false, c, saved.feed_forward); });
    around_backward(layer.attention_norm, gradient, c, saved.attention_norm, [&](Matrix<Real> d) {
      layer.attention.backward(d, d, false, {}, keys, Causal::top_left, c, saved.attention);
    });
  }
  embedding_.backward(gradient, text.ids, text.positions, text.gaps, c, s.embedding);
}

template <class Real>
Loss BareTransformer<Real>::loss_and_gradient(const Batch& batch, Objective objective, Context& c) const {
  const Arena::Scope scope(c.arena);
  Saved s;
  const Matrix<Real> x = forward(batch.target, c, s);
  const Matrix<Real> h = norm_ ? norm_->forward(x, c, s.norm) : x, dh = c.arena.matrix<Real>(h.rows, h.cols);
  const Loss loss = output_.loss_and_gradient(h, batch.labels, objective.label_smoothing, dh, c);
  backward(batch.target, dh, c, s);
  return loss;
}

template <class Real>
double BareTransformer<Real>::variety(const Batch& batch) const {
  Arena arena;
  Context c{arena};
  Saved s;
  const Matrix<Real> x = forward(batch.target, c, s);
  double squares = 0, of_mean = 0;
  for (int64_t i = 0; i < x.cols; i++) {
    double sum = 0;
    for (int64_t n = 0; n < x.rows; n++) sum += x(n, i), squares += static_cast<double>(x(n, i)) * x(n, i);
    of_mean += sum * sum / static_cast<double>(x.rows);
  }
  return 1 - of_mean / squares;
}

template <class Real>
double BareTransformer<Real>::input_size(const Batch& batch) const {
  Arena arena;
  Context c{arena};
  Saved s;
  forward(batch.target, c, s);
  return root_mean_square<Real>(s.layers.back().attention.x);
}

template class BareTransformer<float>;
template class BareTransformer<double>;

}  // namespace qkv
