#include <cmath>

#include "core/fail.h"
#include "program/explain/attention_steps.h"
#include "program/explain/check.h"
#include "program/explain/layer_steps.h"

namespace qkv {

double ExplainInput::factor() const { return scale == 0 ? 1 / std::sqrt(static_cast<double>(key_width())) : scale; }

Explanation explain_attention(const ExplainInput& input) {
  check_explain_input(input, "explain");
  Explanation explanation;
  const AttentionResults results = explain_forward(input, explanation);
  LayerResults layer;
  if (!input.layer.empty()) layer = explain_layer(input, results.O, explanation);
  if (input.dO.empty()) return explanation;
  const NumberTable output = input.layer.empty() ? input.dO : explain_layer_backward(input, layer, explanation);
  explain_backward(input, results, output, explanation);
  return explanation;
}

}  // namespace qkv
