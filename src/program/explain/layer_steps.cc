#include "program/explain/layer_steps.h"

#include <utility>

#include "core/fail.h"
#include "program/explain/head_op.h"

namespace qkv {
namespace {

constexpr const char* kOrdinals[] = {"first", "second", "third"};

}  // namespace

NormSteps LayerRecording::add_norm(size_t k, const ExplainedStep& x) {
  const std::string number = std::to_string(k + 1);
  const NormPlace place = {&layer_.norms[k],  layer_.norm,      layer_.epsilon, number,
                           "gamma_" + number, "beta_" + number, "layer"};
  return explain_norm(place, x, to_);
}

const ExplainedStep& LayerRecording::apply(Sublayer& sublayer, size_t k, const ExplainedStep& x) {
  if (k == places_.size()) {
    to_.begin("Feed-forward network");
    sublayer.feed_forward = explain_feed_forward(layer_, x, to_);
    return *sublayer.feed_forward.output;
  }
  PlacedAttention place = places_[k];
  place.x = &x;
  if (!place.z) place.z = &x;
  sublayer.attention = explain_attention_forward(place, to_);
  return *sublayer.attention->output;
}

const ExplainedStep& LayerRecording::forward(const ExplainedStep& input) {
  const ExplainedStep* x = &input;
  for (size_t k = 0; k < count(); k++) {
    Sublayer sublayer{x};
    const std::string number = std::to_string(k + 1), end = k + 1 == count() ? ": the output of the layer" : "";
    const ExplainedStep* read = x;
    if (is_pre()) {
      to_.begin("Norm");
      sublayer.norm = add_norm(k, *x);
      read = sublayer.norm.N;
    }
    const ExplainedStep& y = apply(sublayer, k, *read);
    to_.begin((is_pre() ? "Residual sum" : "Residual sum and norm") + end);
    x = &to_.sum("residual_" + number, "R_" + number, {*x, y});
    if (!is_pre()) {
      sublayer.norm = add_norm(k, *x);
      x = sublayer.norm.N;
    }
    sublayers_.push_back(std::move(sublayer));
  }
  return *x;
}

SourceGradients LayerRecording::apply_backward(const Sublayer& sublayer, size_t k, const ExplainedStep& d) {
  if (sublayer.attention) {
    SourceGradients gradients = explain_attention_backward(*sublayer.attention, d, to_);
    if (reads_memory(k)) return gradients;
    gradients.x.insert(gradients.x.end(), gradients.z.begin(), gradients.z.end());
    return {std::move(gradients.x), {}};
  }
  to_.begin("Backward: feed-forward network");
  return {explain_feed_forward_backward(sublayer.feed_forward, d, to_), {}};
}

// Returns the gradient of the sublayer's input, from that of its output.
const ExplainedStep& LayerRecording::sublayer_backward(size_t k, const ExplainedStep& output) {
  const Sublayer& sublayer = sublayers_[k];
  const std::string number = std::to_string(k + 1), norm_title = fmt::format("Backward: {} norm", kOrdinals[k]);
  const ExplainedStep* d = &output;
  if (!is_pre()) {
    to_.begin(norm_title);
    d = &explain_norm_backward(sublayer.norm, *d, "dR_" + number, "dR_" + number, to_);
  }
  SourceGradients gradients = apply_backward(sublayer, k, *d);
  if (is_pre()) {
    to_.begin(norm_title);
    const ExplainedStep& dN = to_.sum("dN_" + number, "dN_" + number, gradients.x);
    const std::string through = (layer_.norm == NormKind::rms ? "dRMS_" : "dLN_") + number;
    gradients.x = {explain_norm_backward(sublayer.norm, dN, through, through, to_)};
  }
  if (sublayer.attention)
    to_.begin(k == 0 ? "Backward: inputs" : "Backward: inputs of " + lower_case(sublayer.attention->place.title));
  gradients.x.insert(gradients.x.begin(), *d);  // through the residual sum
  const std::string name = "d" + sublayer.x->name;
  const ExplainedStep& dx = to_.sum(name, name, gradients.x);
  if (!gradients.z.empty()) to_.sum("dg", "dg", gradients.z);
  return dx;
}

void LayerRecording::backward(const ExplainedStep& output) {
  const ExplainedStep* d = &output;
  for (size_t k = count(); k-- > 0;) d = &sublayer_backward(k, *d);
}

}  // namespace qkv
