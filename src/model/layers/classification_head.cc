#include "model/layers/classification_head.h"

#include <cmath>

#include "ops/reference/activation_reference.h"

namespace qkv {
namespace {

double value_of(HeadActivation activation, double x) {
  switch (activation) {
    case HeadActivation::tanh:
      return std::tanh(x);
    case HeadActivation::relu:
      return reference::activation_value(Activation::relu, x);
    case HeadActivation::gelu:
      return reference::activation_value(Activation::gelu, x);
  }
  return x;
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
  for (int64_t n = 0; n < h.rows; n++)
    for (int64_t i = 0; i < h.cols; i++)
      h.row(n)[i] = static_cast<float>(value_of(activation_, static_cast<double>(h.row(n)[i])));
  Norm<float>::Saved saved;
  if (norm_) h = norm_->forward(h, c, saved);
  return output_.forward(h, c);
}

int64_t count_parameters(const ModelConfig& model, const ClassificationConfig& config) {
  const int64_t d = model.d_model, norm = model.norm.kind == NormKind::layer ? 2 * d : d;
  return d * (d + config.dense_bias) + (config.norm ? norm : 0) + std::ssize(config.labels) * (d + 1);
}

}  // namespace qkv
