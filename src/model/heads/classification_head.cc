#include "model/heads/classification_head.h"

#include "ops/dense_activation.h"
#include "ops/dropout.h"

namespace qkv {
namespace {

DenseActivation activation_of(HeadActivation activation) {
  switch (activation) {
    case HeadActivation::tanh:
      return DenseActivation::tanh;
    case HeadActivation::relu:
      return DenseActivation::relu;
    case HeadActivation::gelu:
      return DenseActivation::gelu;
  }
  return DenseActivation::identity;
}

// In place, in both passes.
template <class Real>
void drop(const Dropout& dropped, Matrix<Real> v) {
  if (dropped.active()) dropout<Real>(v, dropped, v);
}

}  // namespace

LabelHeadShape label_head_shape(const ClassificationConfig& config) {
  return {std::ssize(config.labels), config.activation, config.dense_bias, config.norm};
}

template <class Real>
ClassificationHead<Real>::ClassificationHead(ParameterList<Real>& list, const ModelConfig& model,
                                             const LabelHeadShape& shape, double dropout, DropoutSites sites)
    : activation_(activation_of(shape.activation)),
      dropout_(dropout),
      input_site_(sites.next()),
      output_site_(sites.next()),
      dense_(list, {{"head.dense", model.d_model}}, model.d_model, shape.dense_bias),
      norm_(shape.norm ? std::optional<Norm<Real>>(std::in_place, list, "head.norm", model.d_model, model)
                       : std::nullopt),
      output_(list, {{"head.output", shape.labels}}, model.d_model, true) {}

template <class Real>
Matrix<Real> ClassificationHead<Real>::forward(Matrix<Real> v, Context& c, Saved& s) const {
  drop(c.dropout(dropout_, input_site_), v);
  s.v = v;
  s.a = dense_.forward(v, c);
  s.y = c.arena.matrix<Real>(s.a.rows, s.a.cols);
  dense_activation<Real>(activation_, s.a, s.y);
  c.probed("activation", s.y);
  if (norm_) s.y = norm_->forward(s.y, c, s.norm);
  drop(c.dropout(dropout_, output_site_), s.y);
  return output_.forward(s.y, c);
}

template <class Real>
Matrix<Real> ClassificationHead<Real>::backward(Matrix<const Real> dz, Context& c, const Saved& s) const {
  const Matrix<Real> dy = c.arena.matrix<Real>(dz.rows, dense_.out()), dv = c.arena.matrix<Real>(dz.rows, dense_.out());
  output_.backward(s.y, dz, dy, c);
  drop(c.dropout(dropout_, output_site_), dy);
  if (norm_) norm_->backward(dy, c, s.norm);
  dense_activation_backward<Real>(activation_, s.a, dy);
  c.probed("activation", dy, Pass::backward);
  dense_.backward(s.v, dy, dv, c);
  drop(c.dropout(dropout_, input_site_), dv);
  return dv;
}

int64_t count_parameters(const ModelConfig& model, const LabelHeadShape& shape) {
  const int64_t d = model.d_model, norm = model.norm.kind == NormKind::layer ? 2 * d : d;
  return d * (d + shape.dense_bias) + (shape.norm ? norm : 0) + shape.labels * (d + 1);
}

template class ClassificationHead<float>;
template class ClassificationHead<double>;

}  // namespace qkv
