// The backward pass of attention: from the gradient of the output to those of the weights and of X.
#include "core/fail.h"
#include "program/explain/attention_steps.h"

namespace qkv {
namespace {

struct HeadGradients {
  NumberTable dQ, dK, dV, dS;
};

Heads<double> into(NumberTable& table) { return {table.values.data(), table.columns, 0}; }

HeadGradients gradients_of(const ExplainInput& in, const HeadResults& head, const NumberTable& dO) {
  HeadGradients d{zero_table(head.Q.rows, head.Q.columns), zero_table(head.K.rows, head.K.columns),
                  zero_table(head.V.rows, head.V.columns), zero_table(head.A.rows, head.A.columns)};
  attention_backward<double>(attention_input(in, head), {head.O.values.data(), head.O.columns, 0},
                             {head.lse.data(), 1, 0}, {dO.values.data(), dO.columns, 0},
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

NumberTable scaled_by(NumberTable table, double factor) {
  for (double& value : table.values) value *= factor;
  return table;
}

// Adds the steps of one head, and returns its gradients. dO: [T, d_v].
HeadGradients add_gradients(StepList& steps, const ExplainInput& in, const HeadResults& head, const NumberTable& dO) {
  const auto &rows = in.tokens, &keys = key_labels(in);
  const std::string from = in.memory.empty() ? "Xᵀ" : "Mᵀ";
  const HeadGradients d = gradients_of(in, head, dO);
  if (in.heads.size() > 1) steps.add({"dO", "dO", "the columns of dO that belong to this head", rows, {}, dO});
  steps.add({"dV", "dV", "Aᵀ dO", keys, {}, d.dV});
  steps.add({"dA", "dA", "dO Vᵀ", rows, keys, product_with_transposed(dO, head.V)});
  for (int64_t i = 0; i < head.A.rows; i++)
    steps.add({fmt::format("jacobian{}", i + 1), "J, " + rows[static_cast<size_t>(i)], "diag(a) − aᵀ a, a the row of A",
               keys, keys, softmax_jacobian(head.A, i)});
  steps.add({"dS", "dS", "each row of dA times its J", rows, keys, d.dS});
  steps.add({"dscores", "d(Q Kᵀ)", in.scale == 0 ? "dS / √d_k" : fmt::format("{} dS", in.scale), rows, keys,
             scaled_by(d.dS, in.factor())});
  steps.add({"dQ", "dQ", "d(Q Kᵀ) K", rows, {}, d.dQ});
  steps.add({"dK", "dK", "d(Q Kᵀ)ᵀ Q", keys, {}, d.dK});
  steps.add({"dW_Q", "dW_Q", "Xᵀ dQ", {}, {}, product(transposed(in.X), d.dQ)});
  steps.add({"dW_K", "dW_K", from + " dK", {}, {}, product(transposed(keys_from(in)), d.dK)});
  steps.add({"dW_V", "dW_V", from + " dV", {}, {}, product(transposed(keys_from(in)), d.dV)});
  return d;
}

// Returns the gradient of the outputs of the heads, side by side, from that of the attention's output.
NumberTable gradient_of_heads(const ExplainInput& in, const AttentionResults& results, const NumberTable& output,
                              Explanation& to) {
  StepList steps;
  NumberTable dO = output;
  const std::string name = in.W_O.empty() ? "dO" : "dY";
  if (!in.layer.empty()) steps.add({name, name, "dR_1", in.tokens, {}, output});
  if (!in.W_O.empty()) {
    std::vector<NumberTable> outputs;
    for (const HeadResults& head : results.heads) outputs.push_back(head.O);
    steps.add({"dW_O", "dW_O", "Oᵀ dY", {}, {}, product(transposed(side_by_side(outputs)), output)});
    dO = steps.add({"dO", "dO", "dY W_Oᵀ", in.tokens, {}, product_with_transposed(output, in.W_O)});
  }
  if (auto all = steps.take(); !all.empty()) to.push_back({"Backward: output", std::move(all)});
  return dO;
}

}  // namespace

void explain_backward(const ExplainInput& in, const AttentionResults& results, const NumberTable& output,
                      Explanation& to) {
  const NumberTable dO = gradient_of_heads(in, results, output, to);
  const int64_t width = in.value_width();
  NumberTable dX = in.layer.empty() ? zero_table(in.X.rows, in.X.columns) : output,
              dM = zero_table(keys_from(in).rows, in.X.columns);
  for (size_t h = 0; h < in.heads.size(); h++) {
    StepList steps(fmt::format("head{}.", h + 1));
    const auto begin = static_cast<int64_t>(h) * width;
    const HeadGradients d = add_gradients(steps, in, results.heads[h], columns_of(dO, begin, begin + width));
    dX = sum(dX, product_with_transposed(d.dQ, in.heads[h].W_Q));
    dM = sum(dM, sum(product_with_transposed(d.dK, in.heads[h].W_K), product_with_transposed(d.dV, in.heads[h].W_V)));
    to.push_back({"Backward: attention" + which_head(in, h), steps.take()});
  }
  StepList steps;
  const std::string residual = in.layer.empty() ? "" : "dR_1 + ";
  const std::string of_heads = in.heads.size() == 1 ? "" : ", summed over the heads";
  if (in.memory.empty()) {
    steps.add({"dX", "dX", residual + "dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ" + of_heads, in.tokens, {}, sum(dX, dM)});
  } else {
    steps.add({"dX", "dX", residual + "dQ W_Qᵀ" + of_heads, in.tokens, {}, dX});
    steps.add({"dM", "dM", "dK W_Kᵀ + dV W_Vᵀ" + of_heads, in.memory_tokens, {}, dM});
  }
  to.push_back({"Backward: inputs", steps.take()});
}

}  // namespace qkv
