#include <cmath>

#include "core/fail.h"
#include "explain/attention_steps.h"
#include "explain/check.h"

namespace qkv {

double ExplainInput::factor() const { return scale == 0 ? 1 / std::sqrt(static_cast<double>(key_width())) : scale; }

Explanation explain_attention(const ExplainInput& input) {
  check_explain_input(input, "explain");
  Explanation explanation;
  const AttentionResults results = explain_forward(input, explanation);
  if (!input.layer.empty()) explain_layer(input, results.O, explanation);
  if (!input.dO.empty()) explain_backward(input, results, explanation);
  return explanation;
}

}  // namespace qkv
