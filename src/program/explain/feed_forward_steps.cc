#include "program/explain/feed_forward_steps.h"

#include <utility>

#include "core/fields.h"
#include "ops/activation.h"

namespace qkv {
namespace {

const ExplainedStep& add_activation(StepRecorder& to, Activation kind, const ExplainedStep& H) {
  ExplainedStep step{"activation", "φ(H)", std::string(name_of(kind)), H.row_labels, {}, H.values};
  activation<double>(kind, matrix_of(H.values), {}, matrix_of(step.values), matrix_of(step.values).whole());
  step.origin = {StepKind::activation, {H.id}};
  step.origin.activation = kind;
  return to.add(std::move(step));
}

const ExplainedStep& add_times(StepRecorder& to, const std::string& id, const std::string& name, const ExplainedStep& A,
                               const ExplainedStep& B) {
  ExplainedStep step{id, name, A.name + " ∘ " + B.name, A.row_labels, {}, A.values};
  for (size_t i = 0; i < step.values.values.size(); i++) step.values.values[i] *= B.values.values[i];
  step.origin = {StepKind::times, {A.id, B.id}};
  return to.add(std::move(step));
}

// Adds φ(H) ∘ G, computed by the op.
const ExplainedStep& add_gated(StepRecorder& to, Activation kind, const FeedForwardSteps& steps) {
  ExplainedStep step{"gated", "U", "φ(H) ∘ G", steps.H->row_labels, {}, steps.H->values};
  const NumberTable both = side_by_side({steps.H->values, steps.G->values});
  gated_activation<double>(kind, matrix_of(both), {}, matrix_of(step.values));
  step.origin = {StepKind::times, {steps.active->id, steps.G->id}};
  return to.add(std::move(step));
}

const ExplainedStep& add_activation_gradient(StepRecorder& to, Activation kind, const ExplainedStep& H,
                                             const ExplainedStep& dactive) {
  ExplainedStep step{"dH", "dH", "φ′(H) ∘ dφ(H)", H.row_labels, {}, zero_table(H.values.rows, H.values.columns)};
  activation_backward<double>(kind, matrix_of(H.values), matrix_of(dactive.values), {}, matrix_of(step.values),
                              matrix_of(step.values).whole());
  step.origin = {StepKind::activation_gradient, {H.id, dactive.id}};
  step.origin.activation = kind;
  return to.add(std::move(step));
}

}  // namespace

FeedForwardSteps explain_feed_forward(const ExplainedLayer& layer, const ExplainedStep& x, StepRecorder& to) {
  const auto given = [&](const char* name, const NumberTable& table) -> const ExplainedStep& {
    return to.given(name, name, {}, table, {"layer", name});
  };
  FeedForwardSteps steps{&layer, &x};
  steps.W_1 = &given("W_1", layer.W_1);
  const ExplainedStep& b_1 = given("b_1", layer.b_1);
  const ExplainedStep* b_gate = nullptr;
  if (!layer.W_gate.empty()) {
    steps.W_gate = &given("W_gate", layer.W_gate);
    b_gate = &given("b_gate", layer.b_gate);
  }
  steps.W_2 = &given("W_2", layer.W_2);
  const ExplainedStep& b_2 = given("b_2", layer.b_2);
  steps.H = &to.sum("hidden", "H", linear_terms(x, *steps.W_1, &b_1));
  steps.U = steps.active = &add_activation(to, layer.activation, *steps.H);
  if (steps.W_gate) {
    steps.G = &to.sum("gate", "G", linear_terms(x, *steps.W_gate, b_gate));
    steps.U = &add_gated(to, layer.activation, steps);
  }
  steps.output = &to.sum("feed_forward", "F", linear_terms(*steps.U, *steps.W_2, &b_2));
  return steps;
}

RecordedTerms explain_feed_forward_backward(const FeedForwardSteps& steps, const ExplainedStep& dF, StepRecorder& to) {
  to.sum("dW_2", "dW_2", {{turned(*steps.U), dF}});
  to.column_sums("db_2", "db_2", dF);
  const ExplainedStep* dactive = nullptr;
  const ExplainedStep* dG = nullptr;
  if (steps.G) {
    const ExplainedStep& dU = to.sum("dgated", "dU", {{dF, turned(*steps.W_2)}});
    dG = &add_times(to, "dG", "dG", dU, *steps.active);
    dactive = &add_times(to, "dactivation", "dφ(H)", dU, *steps.G);
  } else {
    dactive = &to.sum("dactivation", "dφ(H)", {{dF, turned(*steps.W_2)}});
  }
  const ExplainedStep& dH = add_activation_gradient(to, steps.layer->activation, *steps.H, *dactive);
  to.sum("dW_1", "dW_1", {{turned(*steps.x), dH}});
  to.column_sums("db_1", "db_1", dH);
  RecordedTerms terms = {{dH, turned(*steps.W_1)}};
  if (dG) {
    to.sum("dW_gate", "dW_gate", {{turned(*steps.x), *dG}});
    to.column_sums("db_gate", "db_gate", *dG);
    terms.push_back({*dG, turned(*steps.W_gate)});
  }
  return terms;
}

}  // namespace qkv
