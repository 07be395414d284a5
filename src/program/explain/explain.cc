// The steps of an explanation: inputs, forward pass, backward pass.
#include "program/explain/explain.h"

#include <cmath>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "program/explain/check.h"
#include "program/explain/forms.h"
#include "program/explain/layer_steps.h"
#include "program/explain/output_steps.h"
#include "program/explain/text/arithmetic.h"
#include "program/explain/text/findings.h"

namespace qkv {
namespace {

// The steps of the section of inputs; null: absent.
struct GivenSteps {
  const ExplainedStep *X = nullptr, *memory = nullptr, *mask = nullptr, *cross_mask = nullptr, *gradient = nullptr;
};

// The symbol of the output, whose gradient is dO.
std::string output_symbol(const ExplainInput& in) {
  if (!in.output.empty()) return "Z";
  if (in.layer.empty()) return in.attention.W_O.empty() ? "O" : "Y";
  return fmt::format("{}_{}", in.layer.position == NormPosition::pre ? "R" : "N", in.layer.norms.size());
}

const ExplainedStep& add_mask(StepRecorder& to, const std::vector<std::string>& rows,
                              const std::vector<std::string>& columns, const NumberTable& mask,
                              std::vector<std::string> path) {
  return to.given("mask", "M", rows, mask, std::move(path), columns);
}

GivenSteps add_inputs(const ExplainInput& in, bool backward, StepRecorder& to) {
  GivenSteps given;
  to.begin("Inputs");
  if (!in.X.empty()) given.X = &to.given("X", "X", in.tokens, in.X, {"X"});
  if (!in.memory.empty()) given.memory = &to.given("memory", "g", in.memory_tokens, in.memory, {"memory"});
  const bool reads_memory = in.cross.empty() && !in.memory_tokens.empty();
  if (!in.attention.mask.empty())
    given.mask = &add_mask(to, in.tokens, reads_memory ? in.memory_tokens : in.tokens, in.attention.mask, {"mask"});
  to.set_prefix("cross.");
  if (!in.cross.mask.empty())
    given.cross_mask = &add_mask(to, in.tokens, in.memory_tokens, in.cross.mask, {"cross", "mask"});
  to.set_prefix("");
  if (backward && !in.dO.empty()) {
    const std::vector<std::string>& columns = in.output.vocabulary;
    given.gradient = &to.given("given_gradient", "d" + output_symbol(in), in.tokens, in.dO, {"dO"}, columns);
  }
  return given;
}

std::vector<PlacedAttention> places_of(const ExplainInput& in, const GivenSteps& given) {
  PlacedAttention first = {&in.attention, given.X, nullptr, given.mask, in.tokens, in.tokens};
  if (in.cross.empty()) {
    if (!in.memory_tokens.empty()) first.z = given.memory, first.keys = in.memory_tokens;
    return {first};
  }
  first.title = in.attention.causal ? "Causal self-attention" : "Self-attention";
  first.number = "_1";
  PlacedAttention cross = {&in.cross, nullptr, given.memory, given.cross_mask, in.tokens, in.memory_tokens};
  cross.title = "Cross-attention", cross.prefix = "cross.", cross.number = "_2", cross.path = {"cross"};
  return {first, cross};
}

// Attention without the rest of a layer.
void add_attention_backward(const AttentionSteps& steps, const ExplainedStep& output, StepRecorder& to) {
  SourceGradients gradients = explain_attention_backward(steps, output, to);
  if (gradients.x.empty()) return;
  const bool itself = steps.place.x == steps.place.z;
  if (itself) gradients.x.insert(gradients.x.end(), gradients.z.begin(), gradients.z.end());
  to.begin("Backward: inputs");
  to.sum("dX", "dX", gradients.x);
  if (!itself) to.sum("dg", "dg", gradients.z);
}

}  // namespace

double ExplainedAttention::factor() const {
  return scale == 0 ? 1 / std::sqrt(static_cast<double>(key_width())) : scale;
}

int64_t ExplainedAttention::output_width() const {
  return W_O.empty() ? std::ssize(heads) * value_width() : W_O.columns;
}

Explanation record_steps(const ExplainInput& in, bool backward) {
  StepRecorder to;
  const GivenSteps given = add_inputs(in, backward, to);
  std::vector<PlacedAttention> places = places_of(in, given);
  std::optional<LayerRecording> layer;
  std::optional<AttentionSteps> attention;
  const ExplainedStep* output = nullptr;
  if (in.layer.empty()) {
    if (!places.front().z) places.front().z = given.X;
    attention = explain_attention_forward(places.front(), to);
    output = attention->output;
  } else {
    output = &layer.emplace(in.layer, std::move(places), to).forward(*given.X);
  }
  std::optional<OutputSteps> logits;
  if (!in.output.empty()) logits = explain_output(in.output, in.layer, *output, to);
  if (!backward) return to.take();
  const ExplainedStep* d = logits ? &explain_output_backward(*logits, given.gradient, to) : given.gradient;
  if (layer)
    layer->backward(*d);
  else
    add_attention_backward(*attention, *d, to);
  return to.take();
}

Explanation explain_attention(const ExplainInput& input, const ExplainChoice& choice) {
  check_explain_input(input, "explain");
  if (choice.backward && !input.has_gradient())
    fail("explain: no gradient is given, expected dO, a matrix of the shape of the output, or labels of output");
  Explanation explanation = record_steps(input, choice.backward);
  add_findings(explanation);
  if (choice.arithmetic) add_arithmetic(explanation, input.columns);
  return input.columns ? with_tokens_as_columns(std::move(explanation)) : explanation;
}

}  // namespace qkv
