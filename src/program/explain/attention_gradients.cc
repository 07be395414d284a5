// The backward pass of attention: from the gradient of its output to those of its weights and of what it reads.
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "program/explain/attention_steps.h"
#include "program/explain/head_op.h"

namespace qkv {
namespace {

struct HeadGradients {
  NumberTable dQ, dK, dV, dS;
};

Heads<double> into(NumberTable& table) { return {table.values.data(), table.columns, 0}; }

NumberTable zeros_like(const NumberTable& table) { return zero_table(table.rows, table.columns); }

HeadGradients gradients_of(const ExplainedAttention& in, const HeadSteps& head, const NumberTable& dO) {
  HeadGradients d{zeros_like(head.Q->values), zeros_like(head.K->values), zeros_like(head.V->values),
                  zeros_like(head.A->values)};
  const NumberTable& O = head.O->values;
  attention_backward<double>(attention_op_input(in, head), {O.values.data(), O.columns, 0}, {head.lse.data(), 1, 0},
                             {dO.values.data(), dO.columns, 0},
                             {into(d.dQ), into(d.dK), into(d.dV), {d.dS.values.data(), 0, 0, d.dS.columns, 1}}, {});
  return d;
}

// ∂A_i / ∂S_i = diag(A_i) − A_iᵀ A_i of one query.
NumberTable softmax_jacobian(const NumberTable& A, int64_t i) {
  NumberTable J = zero_table(A.columns, A.columns);
  for (int64_t j = 0; j < A.columns; j++)
    for (int64_t k = 0; k < A.columns; k++) J.at(j, k) = A.at(i, j) * ((j == k ? 1 : 0) - A.at(i, k));
  return J;
}

// Adds the Jacobians of the rows of A and the gradient of the scores.
const ExplainedStep& add_score_gradients(StepRecorder& to, const PlacedAttention& place, const ExplainedStep& A,
                                         const ExplainedStep& dA, const NumberTable& dS) {
  const ExplainedAttention& in = *place.input;
  ExplainedStep ofS{"dS", "dS", "each row of dA times its J", place.tokens, place.keys, dS};
  ofS.origin = {StepKind::row_products, {dA.id}};
  for (int64_t i = 0; i < A.values.rows; i++) {
    ExplainedStep J{fmt::format("jacobian{}", i + 1),
                    "J, " + place.tokens[to_size(i)],
                    "diag(a) − aᵀ a, a the row of A",
                    place.keys,
                    place.keys,
                    softmax_jacobian(A.values, i)};
    J.origin = {StepKind::jacobian, {A.id}};
    J.origin.index = i;
    ofS.origin.of.push_back(to.add(std::move(J)).id);
  }
  const ExplainedStep& added = to.add(std::move(ofS));
  ExplainedStep ofScores{"dscores",    "d(Q Kᵀ)",  in.scale == 0 ? "dS / √d_k" : fmt::format("{} dS", in.scale),
                         place.tokens, place.keys, dS};
  for (double& value : ofScores.values.values) value *= in.factor();
  ofScores.origin = {StepKind::scaled, {added.id}};
  ofScores.origin.number = in.factor();
  ofScores.origin.index = in.scale == 0 ? in.key_width() : 0;
  return to.add(std::move(ofScores));
}

// Adds the gradients of one projection, and returns what it contributes to the gradient of its input.
RecordedTerm add_projection_gradients(StepRecorder& to, const std::string& name, const ExplainedStep& x,
                                      const ExplainedStep& W, const NumberTable& b, const ExplainedStep& d) {
  to.sum("dW_" + name, "dW_" + name, {{turned(x), d}});
  if (!b.empty()) to.column_sums("db_" + name, "db_" + name, d);
  return {d, turned(W)};
}

// Adds the steps of one head.
void add_head_gradients(StepRecorder& to, const AttentionSteps& steps, size_t h, const ExplainedStep& dO,
                        SourceGradients& gradients) {
  const PlacedAttention& place = steps.place;
  const HeadSteps& head = steps.heads[h];
  const HeadGradients d = gradients_of(*place.input, head, dO.values);
  const ExplainedStep& dV = to.sum("dV", "dV", {{turned(*head.A), dO}}, d.dV);
  const ExplainedStep& dA = to.sum("dA", "dA", {{dO, turned(*head.V)}});
  const ExplainedStep& dscores = add_score_gradients(to, place, *head.A, dA, d.dS);
  const ExplainedStep& dQ = to.sum("dQ", "dQ", {{dscores, *head.K}}, d.dQ);
  const ExplainedStep& dK = to.sum("dK", "dK", {{turned(dscores), *head.Q}}, d.dK);
  const ExplainedHead& in = place.input->heads[h];
  if (!in.has_weights()) return;
  gradients.x.push_back(add_projection_gradients(to, "Q", *place.x, *head.W_Q, in.b_Q, dQ));
  gradients.z.push_back(add_projection_gradients(to, "K", *place.z, *head.W_K, in.b_K, dK));
  gradients.z.push_back(add_projection_gradients(to, "V", *place.z, *head.W_V, in.b_V, dV));
}

// Returns the columns of dO that belong to head h.
const ExplainedStep& head_gradient(StepRecorder& to, const AttentionSteps& steps, size_t h, const ExplainedStep& dO) {
  if (steps.heads.size() == 1) return dO;
  const int64_t width = steps.place.input->value_width(), begin = static_cast<int64_t>(h) * width;
  ExplainedStep step{"dO",
                     "dO",
                     "the columns of dO that belong to this head",
                     steps.place.tokens,
                     {},
                     columns_of(dO.values, begin, begin + width)};
  step.origin = {StepKind::columns, {dO.id}};
  step.origin.index = begin;
  return to.add(std::move(step));
}

// Returns the gradient of the outputs of the heads, side by side.
const ExplainedStep& add_output_gradients(StepRecorder& to, const AttentionSteps& steps, const ExplainedStep& output) {
  if (!steps.W_O) return output;
  to.sum("dW_O", "dW_O", {{turned(*steps.O), output}});
  if (!steps.place.input->b_O.empty()) to.column_sums("db_O", "db_O", output);
  return to.sum("dO", "dO", {{output, turned(*steps.W_O)}});
}

}  // namespace

SourceGradients explain_attention_backward(const AttentionSteps& steps, const ExplainedStep& output, StepRecorder& to) {
  const PlacedAttention& place = steps.place;
  const std::string title = place.number.empty() ? "Backward: " : "Backward: " + lower_case(place.title) + ", ";
  to.begin(place.number.empty() ? "Backward: output" : title + "output");
  to.set_prefix(place.prefix);
  // The residual sum passes its gradient on, under the name of what it added.
  const std::string name = "d" + steps.output->name;
  const ExplainedStep& given = name == output.name ? output : to.sum(steps.W_O ? "dY" : "dO", name, {output});
  const ExplainedStep& dO = add_output_gradients(to, steps, given);
  SourceGradients gradients;
  for (size_t h = 0; h < steps.heads.size(); h++) {
    to.set_prefix(fmt::format("{}head{}.", place.prefix, h + 1));
    to.begin("Backward: " + lower_case(place.title) + which_head(*place.input, h));
    add_head_gradients(to, steps, h, head_gradient(to, steps, h, dO), gradients);
  }
  to.set_prefix("");
  return gradients;
}

}  // namespace qkv
