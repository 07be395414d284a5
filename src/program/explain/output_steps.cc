#include "program/explain/output_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "ops/cross_entropy.h"
#include "program/explain/attention_steps.h"

namespace qkv {
namespace {

const ExplainedStep& add_probabilities(StepRecorder& to, const ExplainedStep& Z) {
  const ExponentialSteps exponentials = explain_exponentials(to, Z);
  ExplainedStep P{"probabilities", "P",     "softmax(Z): E divided by its row sums", Z.row_labels,
                  Z.column_labels, Z.values};
  log_softmax<double>(matrix_of(P.values));
  for (double& value : P.values.values) value = std::exp(value);
  P.origin = {StepKind::shares, {exponentials.E->id, exponentials.sums->id}};
  return to.add(std::move(P));
}

// Adds the largest probability of each row, with the token that has it.
void add_predictions(StepRecorder& to, const ExplainedStep& P) {
  ExplainedStep step{"predicted", "predicted", "the largest of each row", {}, {}, zero_table(P.values.rows, 1)};
  for (int64_t i = 0; i < P.values.rows; i++) {
    const auto row = P.values.values.begin() + i * P.values.columns;
    const auto best = std::max_element(row, row + P.values.columns);
    step.values.at(i, 0) = *best;
    step.row_labels.push_back(P.row_labels[to_size(i)] + " → " + P.column_labels[to_size(best - row)]);
  }
  step.origin = {StepKind::largest, {P.id}};
  to.add(std::move(step));
}

// Adds what the labels ask for: q = (1 − ε) at the label, and ε / V everywhere.
const ExplainedStep& add_targets(StepRecorder& to, const ExplainedOutput& in, const ExplainedStep& P) {
  const double share = in.smoothing / static_cast<double>(P.values.columns);
  const std::string formula =
      in.smoothing == 0
          ? "1 at the label of each row"
          : fmt::format("(1 − ε) at the label of each row, + ε / V, ε = {}, V = {}", in.smoothing, P.values.columns);
  ExplainedStep q{"labels", "q", formula, P.row_labels, P.column_labels, zero_table(P.values.rows, P.values.columns)};
  for (double& value : q.values.values) value = share;
  for (int64_t i = 0; i < q.values.rows; i++) q.values.at(i, in.labels[to_size(i)]) += 1 - in.smoothing;
  return to.add(std::move(q));
}

void add_loss(StepRecorder& to, const OutputSteps& steps) {
  const NumberTable& Z = steps.Z->values;
  ExplainedStep losses{"losses", "ℓ", "−Σⱼ qᵢⱼ log pᵢⱼ", steps.Z->row_labels, {}, zero_table(Z.rows, 1)};
  std::vector<double> nll(to_size(Z.rows));
  cross_entropy<double>(matrix_of(Z), steps.input->labels, steps.input->smoothing, losses.values.values.data(),
                        nll.data());
  losses.origin = {StepKind::losses, {steps.Z->id, steps.q->id, steps.P->id}};
  to.column_sums("loss", "L", to.add(std::move(losses)));
}

}  // namespace

OutputSteps explain_output(const ExplainedOutput& output, const ExplainedLayer& layer, const ExplainedStep& x,
                           StepRecorder& to) {
  OutputSteps steps{&output};
  steps.x = &x;
  if (!output.norm.gamma.empty()) {
    to.begin("Final norm");
    steps.norm = explain_norm({&output.norm, layer.norm, layer.epsilon, "f", "gamma", "beta", "output"}, x, to);
    steps.x = steps.norm->N;
  }
  to.begin("Output layer");
  to.set_prefix("output.");
  const auto given = [&](const char* name, const NumberTable& table) -> const ExplainedStep& {
    return to.given(name, std::string(name) + "_U", {}, table, {"output", name}, output.vocabulary);
  };
  steps.W = &given("W", output.W);
  const ExplainedStep* b = output.b.empty() ? nullptr : &given("b", output.b);
  steps.Z = &to.sum("logits", "Z", linear_terms(*steps.x, *steps.W, b));
  steps.P = &add_probabilities(to, *steps.Z);
  add_predictions(to, *steps.P);
  if (!output.labels.empty()) {
    to.begin("Loss");
    steps.q = &add_targets(to, output, *steps.P);
    add_loss(to, steps);
  }
  to.set_prefix("");
  return steps;
}

const ExplainedStep& explain_output_backward(const OutputSteps& steps, const ExplainedStep* dZ, StepRecorder& to) {
  to.set_prefix("output.");
  if (!dZ) {
    to.begin("Backward: loss");
    ExplainedStep step{"dZ", "dZ", "P − q", steps.Z->row_labels, steps.Z->column_labels, steps.Z->values};
    std::vector<double> loss(to_size(step.values.rows)), nll = loss;
    cross_entropy_with_gradient<double>(matrix_of(step.values), steps.input->labels, steps.input->smoothing, 1,
                                        loss.data(), nll.data());
    step.origin = {StepKind::difference, {steps.P->id, steps.q->id}};
    dZ = &to.add(std::move(step));
  }
  to.begin("Backward: output layer");
  to.sum("dW", "dW_U", {{turned(*steps.x), *dZ}});
  if (!steps.input->b.empty()) to.column_sums("db", "db_U", *dZ);
  to.set_prefix("");
  const std::string name = "d" + steps.x->name;
  const ExplainedStep& dx = to.sum(name, name, {{*dZ, turned(*steps.W)}});
  if (!steps.norm) return dx;
  to.begin("Backward: final norm");
  const std::string before = "d" + steps.norm->x->name;
  return explain_norm_backward(*steps.norm, dx, before, before, to);
}

}  // namespace qkv
