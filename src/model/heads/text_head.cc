#include "model/heads/text_head.h"

#include <cmath>

#include "core/fail.h"
#include "core/to_size.h"
#include "ops/pooling.h"

namespace qkv {
namespace {

constexpr double kUsualTemperature = 0.05;

void check_dense(const std::vector<DenseShape>& dense, int64_t width) {
  for (size_t i = 0; i < dense.size(); i++) {
    if (dense[i].in != width) fail("text head: dense layer {} must have {} inputs (has {})", i, width, dense[i].in);
    width = dense[i].out;
    if (width < 1) fail("text head: dense layer {} must have at least 1 output (has {})", i, width);
  }
}

void check_label_head(const TextHeadConfig& head, const ModelConfig& model) {
  if (head.labels.labels < 1) fail("text head: must have at least 1 label (has {})", head.labels.labels);
  if (!(head.dropout >= 0 && head.dropout < 1))
    fail("text head: dropout must be at least 0 and below 1 (is {})", head.dropout);
  if (model.token_head == TokenHead::dense)
    fail("text head: token_head must be none or output for a model with labels (is dense)");
}

int64_t outputs_of(const TextHeadConfig& head, const ModelConfig& model) {
  if (head.kind == TextHeadConfig::Kind::labels) return head.labels.labels;
  return head.dense.empty() ? model.d_model : head.dense.back().out;
}

}  // namespace

void check(const TextHeadConfig& head, const ModelConfig& model) {
  if (head.kind == TextHeadConfig::Kind::none) return;
  if (model.has_encoder() && model.has_decoder())
    fail("text head: the model must be an encoder or a decoder alone (has {} encoder and {} decoder layers)",
         model.encoder_layers, model.decoder_layers);
  if (head.kind == TextHeadConfig::Kind::vectors)
    check_dense(head.dense, model.d_model);
  else
    check_label_head(head, model);
}

template <class Real>
TextHead<Real>::TextHead(ParameterList<Real>& list, const ModelConfig& model, const TextHeadConfig& config,
                         DropoutSites sites)
    : config_(config),
      width_(outputs_of(config, model)),
      dense_(list, config.kind == TextHeadConfig::Kind::vectors ? std::span<const DenseShape>(config.dense)
                                                                : std::span<const DenseShape>()),
      labels_(config.kind == TextHeadConfig::Kind::labels
                  ? std::optional<ClassificationHead<Real>>(std::in_place, list, model, config.labels, config.dropout,
                                                            sites)
                  : std::nullopt),
      temperature_(config.kind == TextHeadConfig::Kind::vectors && config.temperature
                       ? list.add("temperature", {1}, Init{-std::log(kUsualTemperature), 0, 0})
                       : nullptr) {}

template <class Real>
Matrix<Real> TextHead<Real>::forward(Matrix<const Real> h, std::span<const int32_t> offsets, Context& c,
                                     Saved& s) const {
  s.h = h;
  s.offsets = offsets;
  const Matrix<Real> v = c.arena.matrix<Real>(std::ssize(offsets) - 1, h.cols);
  pool_rows<Real>(h, offsets, config_.pooling, v);
  c.probed("pooling", v);
  return labels_ ? labels_->forward(v, c, s.labels) : dense_.forward(v, c, s.dense);
}

template <class Real>
void TextHead<Real>::backward(Matrix<Real> dv, Matrix<Real> dh, Context& c, const Saved& s) const {
  const Matrix<Real> dpooled = labels_ ? labels_->backward(dv, c, s.labels) : dense_.backward(dv, c, s.dense);
  pool_rows_backward<Real>(s.h, s.offsets, config_.pooling, dpooled, dh);
  c.probed("pooling", dh, Pass::backward);
}

template class TextHead<float>;
template class TextHead<double>;

}  // namespace qkv
