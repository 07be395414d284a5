#include "model/heads/head_transform.h"

#include "ops/epilogue.h"

namespace qkv {

template <class Real>
HeadTransform<Real>::HeadTransform(ParameterList<Real>& list, const std::string& name, const ModelConfig& config)
    : dense_(list, {{name + ".dense", width_of_head(config)}}, config.d_model, config.ffn_bias),
      norm_(list, name + ".norm", width_of_head(config), config),
      kind_(config.activation) {}

template <class Real>
Matrix<Real> HeadTransform<Real>::forward(Matrix<const Real> h, Context& c, Saved& s) const {
  s.h = h;
  s.a = c.arena.matrix<Real>(h.rows, dense_.out());
  s.y = kind_ == Activation::relu ? s.a : c.arena.matrix<Real>(h.rows, dense_.out());
  dense_.forward_into(h, s.a, c, Epilogue<Real>::activation(kind_, {}, s.y));
  c.probed("activation", s.y);
  return norm_.forward(s.y, c, s.norm);
}

template <class Real>
void HeadTransform<Real>::backward(Matrix<Real> dy, Matrix<Real> dh, Context& c, const Saved& s) const {
  norm_.backward(dy, c, s.norm);
  apply(Epilogue<Real>::activation_backward(kind_, {}, s.a), dy);
  c.probed("activation", dy, Pass::backward);
  dense_.backward(s.h, dy, dh, c);
}

QKV_FOR_ELEMENTS(template class HeadTransform);

}  // namespace qkv
