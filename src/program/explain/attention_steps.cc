// The forward pass of attention, and the backward pass: from the gradient of the output to those of the weights and X.
#include "program/explain/attention_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr double kLargestShown = 100;  // exponentials of larger scores are shown relative to the row's largest

Heads<const double> one_head(const NumberTable& table) { return {table.values.data(), table.columns, 0}; }

// The scores with the mask: −∞ where a key is hidden.
NumberTable masked(const ExplainInput& in, const NumberTable& scaled) {
  NumberTable result = scaled;
  for (int64_t i = 0; i < result.rows; i++)
    for (int64_t j = 0; j < result.columns; j++) {
      if (!in.mask.empty()) result.at(i, j) += in.mask.at(i, j);
      if (in.causal && j > i) result.at(i, j) = -std::numeric_limits<double>::infinity();
    }
  return result;
}

NumberTable row_maxima(const NumberTable& S) {
  NumberTable result = zero_table(S.rows, 1);
  for (int64_t i = 0; i < S.rows; i++) {
    result.at(i, 0) = S.at(i, 0);
    for (int64_t j = 1; j < S.columns; j++) result.at(i, 0) = std::max(result.at(i, 0), S.at(i, j));
    if (std::isinf(result.at(i, 0))) result.at(i, 0) = 0;  // sees no key
  }
  return result;
}

void add_exponentials(StepList& steps, const NumberTable& S, const std::vector<std::string>& rows,
                      const std::vector<std::string>& keys) {
  const bool shifts = std::ranges::any_of(S.values, [](double s) { return s > kLargestShown; });
  NumberTable shift = shifts ? row_maxima(S) : zero_table(S.rows, 1), E = S, sums = zero_table(S.rows, 1);
  for (int64_t i = 0; i < S.rows; i++)
    for (int64_t j = 0; j < S.columns; j++) {
      E.at(i, j) = std::exp(S.at(i, j) - shift.at(i, 0));
      sums.at(i, 0) += E.at(i, j);
    }
  steps.add({"exp", "E", shifts ? "exp(S − the largest of the row)" : "exp(S)", rows, keys, E});
  steps.add({"row_sums", "row sums", "Σⱼ Eᵢⱼ", rows, {}, sums});
}

// Adds the steps from the projections to the scores that softmax gets, and returns the projections.
HeadResults add_scores(StepList& steps, const ExplainInput& in, const ExplainedHead& W) {
  const auto& keys = key_labels(in);
  const std::string from = in.memory.empty() ? "X" : "M";
  HeadResults head;
  for (const auto& [name, table] : {std::pair{"W_Q", &W.W_Q}, {"W_K", &W.W_K}, {"W_V", &W.W_V}})
    steps.add({name, name, "", {}, {}, *table});
  head.Q = steps.add({"Q", "Q", "X W_Q", in.tokens, {}, product(in.X, W.W_Q)});
  head.K = steps.add({"K", "K", from + " W_K", keys, {}, product(keys_from(in), W.W_K)});
  head.V = steps.add({"V", "V", from + " W_V", keys, {}, product(keys_from(in), W.W_V)});
  NumberTable S = steps.add({"scores", "scores", "Q Kᵀ", in.tokens, keys, product_with_transposed(head.Q, head.K)});
  for (double& s : S.values) s *= in.factor();
  const std::string factor = in.scale == 0
                                 ? fmt::format("Q Kᵀ / √d_k, with √d_k = √{} = {:.3f}", in.key_width(), 1 / in.factor())
                                 : fmt::format("{} Q Kᵀ", in.scale);
  steps.add({"scaled", "S", factor, in.tokens, keys, S});
  if (in.causal || !in.mask.empty()) S = steps.add({"masked", "S", "S + mask", in.tokens, keys, masked(in, S)});
  add_exponentials(steps, S, in.tokens, keys);
  return head;
}

// Computes the output and the weights by the ops.
void attend(const ExplainInput& in, HeadResults& head) {
  head.O = zero_table(head.Q.rows, head.V.columns);
  head.lse.resize(to_size(head.Q.rows));
  head.A = zero_table(head.Q.rows, head.K.rows);
  const AttentionInput<double> input = attention_input(in, head);
  attention<double>(input, {head.O.values.data(), head.O.columns, 0}, {head.lse.data(), 1, 0}, {});
  attention_weights<double>(input, {head.lse.data(), 1, 0}, {0, 0, 0, head.Q.rows}, head.A.values.data());
}

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

std::string which_head(const ExplainInput& in, size_t h) {
  return in.heads.size() == 1 ? "" : fmt::format(", head {} of {}", h + 1, in.heads.size());
}

AttentionInput<double> attention_input(const ExplainInput& in, const HeadResults& head) {
  AttentionInput<double> input;
  input.sequences.count = 1;
  input.sequences.T = head.Q.rows;
  input.sequences.S = head.K.rows;
  input.key_width = head.Q.columns;
  input.value_width = head.V.columns;
  input.scale = in.factor();
  input.causal = in.causal ? Causal::top_left : Causal::none;
  if (!in.mask.empty()) input.mask = {in.mask.values.data(), 0, 0, in.mask.columns, 1};
  input.q = one_head(head.Q), input.k = one_head(head.K), input.v = one_head(head.V);
  return input;
}

AttentionResults explain_forward(const ExplainInput& in, Explanation& to) {
  StepList inputs;
  inputs.add({"X", "X", "", in.tokens, {}, in.X});
  if (!in.memory.empty()) inputs.add({"memory", "M", "", in.memory_tokens, {}, in.memory});
  if (!in.mask.empty()) inputs.add({"mask", "mask", "", in.tokens, key_labels(in), in.mask});
  const std::string given = !in.layer.empty() ? "dN_2" : in.W_O.empty() ? "dO" : "dY";
  if (!in.dO.empty()) inputs.add({"given_gradient", given, "", in.tokens, {}, in.dO});
  to.push_back({"Inputs", inputs.take()});
  AttentionResults results;
  std::vector<NumberTable> outputs;
  for (size_t h = 0; h < in.heads.size(); h++) {
    StepList steps(fmt::format("head{}.", h + 1));
    HeadResults head = add_scores(steps, in, in.heads[h]);
    attend(in, head);
    steps.add({"weights", "A", "softmax(S): E divided by its row sums", in.tokens, key_labels(in), head.A});
    outputs.push_back(steps.add({"output", "O", "A V", in.tokens, {}, head.O}));
    to.push_back({"Attention" + which_head(in, h), steps.take()});
    results.heads.push_back(std::move(head));
  }
  StepList steps;
  results.O = side_by_side(outputs);
  if (in.heads.size() > 1) steps.add({"concat", "O", "outputs of the heads, side by side", in.tokens, {}, results.O});
  if (!in.W_O.empty()) {
    steps.add({"W_O", "W_O", "", {}, {}, in.W_O});
    results.O = steps.add({"output", "Y", "O W_O", in.tokens, {}, product(results.O, in.W_O)});
  }
  if (auto all = steps.take(); !all.empty()) to.push_back({"Output of all heads", std::move(all)});
  return results;
}

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
