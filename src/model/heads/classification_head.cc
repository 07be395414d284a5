#include "model/heads/classification_head.h"

#include "ops/dense_activation.h"

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

}  // namespace

ClassificationHead::ClassificationHead(const ModelConfig& model, const ClassificationConfig& config)
    : activation_(config.activation),
      dense_(parameters_, {{"head.dense", model.d_model}}, model.d_model, config.dense_bias),
      norm_(config.norm ? std::optional<Norm<float>>(std::in_place, parameters_, "head.norm", model.d_model, model)
                        : std::nullopt),
      output_(parameters_, {{"head.output", std::ssize(config.labels)}}, model.d_model, true) {
  parameters_.allocate();
}

Matrix<float> ClassificationHead::forward(Matrix<const float> v, Context& c) const {
  Matrix<float> h = dense_.forward(v, c);
  dense_activation(activation_of(activation_), h);
  Norm<float>::Saved saved;
  if (norm_) h = norm_->forward(h, c, saved);
  return output_.forward(h, c);
}

int64_t count_parameters(const ModelConfig& model, const ClassificationConfig& config) {
  const int64_t d = model.d_model, norm = model.norm.kind == NormKind::layer ? 2 * d : d;
  return d * (d + config.dense_bias) + (config.norm ? norm : 0) + std::ssize(config.labels) * (d + 1);
}

}  // namespace qkv
