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

template <class Real>
Matrix<Real> FeedForward<Real>::forward(Matrix<const Real> x, Context& c, Saved& s) const {
  s.x = x;
  s.a = c.arena.matrix<Real>(x.rows, first_.out());
  if (gated_) {
    s.hidden = c.arena.matrix<Real>(x.rows, first_.out() / 2);
    first_.forward_into(x, s.a, c, {});
    gated_activation<Real>(kind_, s.a, c.dropout(p_, site_), s.hidden);
    c.probed("gated activation", s.hidden);
    return second_.forward(s.hidden, c);
  }
  // The output of relu is enough for backward: the gradient is 0 unless it is positive. So activations overwrite
  // their input for relu, and if no backward follows.
  s.hidden = kind_ == Activation::relu || c.inference ? s.a : c.arena.matrix<Real>(s.a.rows, s.a.cols);
  first_.forward_into(x, s.a, c, Epilogue<Real>::activation(kind_, c.dropout(p_, site_), s.hidden));
  c.probed("activation", s.hidden);
  return second_.forward(s.hidden, c);
}

template <class Real>
void FeedForward<Real>::backward(Matrix<const Real> dy, Matrix<Real> dx, bool accumulate, Context& c,
                                 const Saved& s) const {
  const Arena::Scope scope(c.arena);
  const Matrix<Real> d = c.arena.matrix<Real>(s.a.rows, s.a.cols);
  if (gated_) {
    const Matrix<Real> dhidden = c.arena.matrix<Real>(s.hidden.rows, s.hidden.cols);
    second_.backward(s.hidden, dy, dhidden, c);
    gated_activation_backward<Real>(kind_, s.a, dhidden, c.dropout(p_, site_), d);
    c.probed("gated activation", d, Pass::backward);
    first_.backward(s.x, d, dx, c, accumulate);
    return;
  }
  second_.backward(s.hidden, dy, d, c, false, Epilogue<Real>::activation_backward(kind_, c.dropout(p_, site_), s.a));
  c.probed("activation", d, Pass::backward);
  first_.backward(s.x, d, dx, c, accumulate);
}

QKV_FOR_ELEMENTS(template class FeedForward);

}  // namespace qkv
