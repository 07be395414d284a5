// The forward pass of an encoder layer after its attention, and the backward pass, from the gradient of the layer's
// output, N_2, to those of its weights and of the attention's output.
#include "program/explain/layer_steps.h"

#include <utility>

#include "core/arena.h"
#include "core/to_size.h"
#include "ops/activation.h"
#include "ops/layer_norm.h"

namespace qkv {
namespace {

NumberTable with_bias(const NumberTable& X, const NumberTable& b) {
  NumberTable repeated = zero_table(X.rows, X.columns);
  for (int64_t r = 0; r < X.rows; r++)
    for (int64_t c = 0; c < X.columns; c++) repeated.at(r, c) = b.at(0, c);
  return sum(X, repeated);
}

// Adds the steps of the norm after residual sum `number`.
NormResults add_norm(StepList& steps, const ExplainInput& in, const NumberTable& R, const std::string& number,
                     const NumberTable& gamma, const NumberTable& beta) {
  NormResults norm{R, zero_table(R.rows, R.columns), std::vector<double>(to_size(R.rows)),
                   std::vector<double>(to_size(R.rows))};
  layer_norm<double>(matrix_of(R), gamma.values.data(), beta.values.data(), in.layer.epsilon, matrix_of(norm.N),
                     norm.mean.data(), norm.rstd.data());
  NumberTable statistics = zero_table(R.rows, 2);
  for (int64_t r = 0; r < R.rows; r++) {
    statistics.at(r, 0) = norm.mean[to_size(r)];
    statistics.at(r, 1) = 1 / norm.rstd[to_size(r)];
  }
  steps.add({"gamma_" + number, "γ_" + number, "", {}, {}, gamma});
  steps.add({"beta_" + number, "β_" + number, "", {}, {}, beta});
  steps.add(
      {"statistics_" + number, "μ, σ", "mean and √(variance + ε) of each row", in.tokens, {"μ", "σ"}, statistics});
  const std::string formula = "γ_" + number + " ∘ (R_" + number + " − μ) / σ + β_" + number;
  steps.add({"norm_" + number, "N_" + number, formula, in.tokens, {}, norm.N});
  return norm;
}

NumberTable column_sums(const NumberTable& table) {
  NumberTable sums = zero_table(1, table.columns);
  for (int64_t r = 0; r < table.rows; r++)
    for (int64_t c = 0; c < table.columns; c++) sums.at(0, c) += table.at(r, c);
  return sums;
}

// Adds the steps of the norm after residual sum `number`, and returns the gradient of that sum.
NumberTable add_norm_gradients(StepList& steps, const ExplainInput& in, const NormResults& norm, const NumberTable& dN,
                               const NumberTable& gamma, const std::string& number) {
  NumberTable dR = zero_table(dN.rows, dN.columns), dgamma = zero_table(1, dN.columns), dbeta = dgamma;
  Arena scratch(1 << 20);
  layer_norm_backward<double>(matrix_of(dN), matrix_of(norm.R), gamma.values.data(), norm.mean.data(), norm.rstd.data(),
                              matrix_of(dR), dgamma.values.data(), dbeta.values.data(), scratch);
  const std::string normalized = "(R_" + number + " − μ) / σ";
  steps.add({"dgamma_" + number, "dγ_" + number, "Σᵢ dN_" + number + " ∘ " + normalized, {}, {}, dgamma});
  steps.add({"dbeta_" + number, "dβ_" + number, "Σᵢ dN_" + number, {}, {}, dbeta});
  const std::string formula = "(G − mean(G) − Z mean(G ∘ Z)) / σ, G = γ_" + number + " ∘ dN_" + number +
                              ", Z = " + normalized + ", means of each row";
  return steps.add({"dR_" + number, "dR_" + number, formula, in.tokens, {}, dR});
}

// Adds the steps of the feed-forward network, and returns dN_1.
NumberTable add_feed_forward_gradients(StepList& steps, const ExplainInput& in, const LayerResults& results,
                                       const NumberTable& dR2) {
  const ExplainedLayer& layer = in.layer;
  steps.add({"dW_2", "dW_2", "φ(H)ᵀ dR_2", {}, {}, product(transposed(results.active), dR2)});
  steps.add({"db_2", "db_2", "Σᵢ dR_2", {}, {}, column_sums(dR2)});
  NumberTable dH =
      steps.add({"dactivation", "dφ(H)", "dR_2 W_2ᵀ", in.tokens, {}, product_with_transposed(dR2, layer.W_2)});
  activation_backward<double>(layer.activation, matrix_of(results.H), matrix_of(std::as_const(dH)), {}, matrix_of(dH),
                              matrix_of(dH).whole());
  steps.add({"dH", "dH", "φ′(H) ∘ dφ(H)", in.tokens, {}, dH});
  steps.add({"dW_1", "dW_1", "N_1ᵀ dH", {}, {}, product(transposed(results.norm_1.N), dH)});
  steps.add({"db_1", "db_1", "Σᵢ dH", {}, {}, column_sums(dH)});
  const NumberTable through = product_with_transposed(dH, layer.W_1);
  return steps.add({"dN_1", "dN_1", "dR_2 + dH W_1ᵀ", in.tokens, {}, sum(dR2, through)});
}

}  // namespace

LayerResults explain_layer(const ExplainInput& in, const NumberTable& attention, Explanation& to) {
  const ExplainedLayer& layer = in.layer;
  LayerResults results;
  StepList steps;
  const std::string output = in.W_O.empty() ? "O" : "Y";
  const NumberTable R1 = steps.add({"residual_1", "R_1", "X + " + output, in.tokens, {}, sum(in.X, attention)});
  results.norm_1 = add_norm(steps, in, R1, "1", layer.gamma_1, layer.beta_1);
  const NumberTable& N1 = results.norm_1.N;
  to.push_back({"Residual sum and norm", steps.take()});

  for (const auto& [name, table] :
       {std::pair{"W_1", &layer.W_1}, {"b_1", &layer.b_1}, {"W_2", &layer.W_2}, {"b_2", &layer.b_2}})
    steps.add({name, name, "", {}, {}, *table});
  results.H = results.active =
      steps.add({"hidden", "H", "N_1 W_1 + b_1", in.tokens, {}, with_bias(product(N1, layer.W_1), layer.b_1)});
  const std::string name(names_of(Activation{})[static_cast<size_t>(layer.activation)]);
  activation<double>(layer.activation, matrix_of(std::as_const(results.H)), {}, matrix_of(results.active),
                     matrix_of(results.active).whole());
  steps.add({"activation", "φ(H)", name, in.tokens, {}, results.active});
  const NumberTable F = steps.add(
      {"feed_forward", "F", "φ(H) W_2 + b_2", in.tokens, {}, with_bias(product(results.active, layer.W_2), layer.b_2)});
  to.push_back({"Feed-forward network", steps.take()});

  const NumberTable R2 = steps.add({"residual_2", "R_2", "N_1 + F", in.tokens, {}, sum(N1, F)});
  results.norm_2 = add_norm(steps, in, R2, "2", layer.gamma_2, layer.beta_2);
  to.push_back({"Residual sum and norm: the output of the layer", steps.take()});
  return results;
}

NumberTable explain_layer_backward(const ExplainInput& in, const LayerResults& results, Explanation& to) {
  StepList steps;
  const NumberTable dR2 = add_norm_gradients(steps, in, results.norm_2, in.dO, in.layer.gamma_2, "2");
  to.push_back({"Backward: second norm", steps.take()});
  const NumberTable dN1 = add_feed_forward_gradients(steps, in, results, dR2);
  to.push_back({"Backward: feed-forward network", steps.take()});
  NumberTable dR1 = add_norm_gradients(steps, in, results.norm_1, dN1, in.layer.gamma_1, "1");
  to.push_back({"Backward: first norm", steps.take()});
  return dR1;
}

}  // namespace qkv
