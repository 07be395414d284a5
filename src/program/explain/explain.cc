// The steps of an explanation, and the examples that `qkv explain` shows by default.
#include "program/explain/explain.h"

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

ExplainInput textbook_example() {
  const NumberTable alternating = {4, 2, {1, 0, 0, 1, 1, 0, 0, 1}}, swapped = {4, 2, {0, 1, 1, 0, 0, 1, 1, 0}};
  ExplainInput in;
  in.tokens = {"Chai", "piyo"};
  in.X = {2, 4, {1, 0, 1, 0, 0, 1, 0, 1}};
  in.heads = {{alternating, swapped, alternating}};
  in.dO = {2, 2, {1, 0, 0, 1}};
  return in;
}

ExplainInput layer_example() {
  ExplainInput in = textbook_example();
  in.W_O = {2, 4, {1, 0, 0.5, 0, 0, 1, 0, 0.5}};
  in.dO = {2, 4, {1, 0, 0, 0, 0, 1, 0, 0}};
  const NumberTable ones = {1, 4, {1, 1, 1, 1}}, zeros = {1, 4, {0, 0, 0, 0}};
  in.layer.gamma_1 = in.layer.gamma_2 = ones;
  in.layer.beta_1 = in.layer.beta_2 = zeros;
  in.layer.W_1 = {4, 4, {1, 0, -1, 0, 0, 1, 0, -1, 1, 0, 0, 1, 0, 1, 1, 0}};
  in.layer.b_1 = {1, 4, {0, 0.5, 0, -0.5}};
  in.layer.W_2 = {4, 4, {0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5}};
  in.layer.b_2 = zeros;
  return in;
}

}  // namespace qkv
