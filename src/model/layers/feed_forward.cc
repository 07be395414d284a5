#include "model/layers/feed_forward.h"

#include "ops/activation.h"

namespace qkv {
namespace {

LinearOutputs first_outputs(const std::string& name, const ModelConfig& config) {
  LinearOutputs outputs = {{name + ".first", config.ffn}};
  if (config.gated_ffn) outputs.emplace_back(name + ".gate", config.ffn);
  return outputs;
}

}  // namespace

template <class Real>
FeedForward<Real>::FeedForward(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                               DropoutSites& sites)
    : first_(list, first_outputs(name, config), config.d_model, config.ffn_bias),
      second_(list, {{name + ".second", config.d_model}}, config.ffn, config.ffn_bias),
      kind_(config.activation),
      gated_(config.gated_ffn),
      p_(config.dropout.ffn),
      site_(sites.next()) {}

// The output of relu is enough for backward: the gradient is 0 unless it is positive. So activations overwrite their
// input for relu, and if no backward follows.
template <class Real>
Matrix<Real> FeedForward<Real>::place_of_activations(Context& c, const Saved& s) const {
  if (!gated_ && (kind_ == Activation::relu || c.inference)) return s.a;
  return c.arena.matrix<Real>(s.a.rows, gated_ ? s.a.cols / 2 : s.a.cols);
}

template <class Real>
Epilogue<Real> FeedForward<Real>::activation_into(Matrix<Real> hidden, Context& c) const {
  return Epilogue<Real>::activation(kind_, c.dropout(p_, site_), hidden);
}

template <class Real>
Matrix<Real> FeedForward<Real>::forward(Matrix<const Real> x, Context& c, Saved& s) const {
  s.x = x;
  s.a = c.arena.matrix<Real>(x.rows, first_.out());
  const Matrix<Real> y = c.arena.matrix<Real>(x.rows, second_.out());
  const Arena::Scope scope(c.arena);
  const Matrix<Real> hidden = place_of_activations(c, s);
  if (gated_) {
    first_.forward_into(x, s.a, c, {});
    gated_activation<Real>(kind_, s.a, c.dropout(p_, site_), hidden);
    c.probed("gated activation", hidden);
  } else {
    first_.forward_into(x, s.a, c, activation_into(hidden, c));
    c.probed("activation", hidden);
  }
  second_.forward_into(hidden, y, c, {});
  return y;
}

template <class Real>
void FeedForward<Real>::backward(Matrix<const Real> dy, Matrix<Real> dx, bool accumulate, Context& c,
                                 const Saved& s) const {
  const Arena::Scope scope(c.arena);
  const Dropout drop = c.dropout(p_, site_);
  const Matrix<Real> hidden = place_of_activations(c, s), d = c.arena.matrix<Real>(s.a.rows, s.a.cols);
  if (gated_) {
    gated_activation<Real>(kind_, s.a, drop, hidden);
    const Matrix<Real> dhidden = c.arena.matrix<Real>(hidden.rows, hidden.cols);
    second_.backward(hidden, dy, dhidden, c);
    gated_activation_backward<Real>(kind_, s.a, dhidden, drop, d);
    c.probed("gated activation", d, Pass::backward);
  } else {
    if (hidden.data != s.a.data) apply(activation_into(hidden, c), s.a);
    second_.backward(hidden, dy, d, c, false, Epilogue<Real>::activation_backward(kind_, drop, s.a));
    c.probed("activation", d, Pass::backward);
  }
  first_.backward(s.x, d, dx, c, accumulate);
}

QKV_FOR_ELEMENTS(template class FeedForward);

}  // namespace qkv
