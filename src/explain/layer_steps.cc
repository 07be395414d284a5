// The rest of an encoder layer after its attention: residual sums, norms and the feed-forward network.
#include "explain/attention_steps.h"
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

// Adds the steps of the norm after residual sum `number`, and returns its result.
NumberTable add_norm(StepList& steps, const ExplainInput& in, const NumberTable& R, const std::string& number,
                     const NumberTable& gamma, const NumberTable& beta) {
  NumberTable Y = zero_table(R.rows, R.columns), mean = zero_table(1, R.rows), rstd = mean;
  layer_norm<double>(matrix_of(R), gamma.values.data(), beta.values.data(), in.layer.epsilon, matrix_of(Y),
                     mean.values.data(), rstd.values.data());
  NumberTable statistics = zero_table(R.rows, 2);
  for (int64_t r = 0; r < R.rows; r++) {
    statistics.at(r, 0) = mean.at(0, r);
    statistics.at(r, 1) = 1 / rstd.at(0, r);
  }
  steps.add({"gamma_" + number, "γ_" + number, "", {}, {}, gamma});
  steps.add({"beta_" + number, "β_" + number, "", {}, {}, beta});
  steps.add(
      {"statistics_" + number, "μ, σ", "mean and √(variance + ε) of each row", in.tokens, {"μ", "σ"}, statistics});
  return steps.add({"norm_" + number,
                    "N_" + number,
                    "γ_" + number + " ∘ (R_" + number + " − μ) / σ + β_" + number,
                    in.tokens,
                    {},
                    Y});
}

}  // namespace

void explain_layer(const ExplainInput& in, const NumberTable& attention, Explanation& to) {
  const ExplainedLayer& layer = in.layer;
  StepList steps;
  const std::string output = in.W_O.empty() ? "O" : "Y";
  const NumberTable R1 = steps.add({"residual_1", "R_1", "X + " + output, in.tokens, {}, sum(in.X, attention)});
  const NumberTable N1 = add_norm(steps, in, R1, "1", layer.gamma_1, layer.beta_1);
  to.push_back({"Residual sum and norm", steps.take()});

  for (const auto& [name, table] :
       {std::pair{"W_1", &layer.W_1}, {"b_1", &layer.b_1}, {"W_2", &layer.W_2}, {"b_2", &layer.b_2}})
    steps.add({name, name, "", {}, {}, *table});
  NumberTable hidden = with_bias(product(N1, layer.W_1), layer.b_1);
  steps.add({"hidden", "H", "N_1 W_1 + b_1", in.tokens, {}, hidden});
  const std::string name(names_of(Activation{})[static_cast<size_t>(layer.activation)]);
  activation<double>(layer.activation, matrix_of(std::as_const(hidden)), {}, matrix_of(hidden),
                     matrix_of(hidden).whole());
  steps.add({"activation", "φ(H)", name, in.tokens, {}, hidden});
  const NumberTable F = steps.add(
      {"feed_forward", "F", "φ(H) W_2 + b_2", in.tokens, {}, with_bias(product(hidden, layer.W_2), layer.b_2)});
  to.push_back({"Feed-forward network", steps.take()});

  const NumberTable R2 = steps.add({"residual_2", "R_2", "N_1 + F", in.tokens, {}, sum(N1, F)});
  add_norm(steps, in, R2, "2", layer.gamma_2, layer.beta_2);
  to.push_back({"Residual sum and norm: the output of the layer", steps.take()});
}

}  // namespace qkv
