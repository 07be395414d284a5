// program/explain/explain.h: each gradient against central differences of the output or the loss.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "program/explain/explain.h"
#include "program/explain/tables.h"
#include "tests/program/explain/explain_cases.h"

namespace qkv::testing {
namespace {

// The id of the step whose gradient is explained.
std::string output_of(const ExplainInput& in) {
  if (!in.output.empty()) return in.output.labels.empty() ? "output.logits" : "output.loss";
  const std::string last = std::to_string(in.layer.norms.size());
  if (!in.layer.empty()) return (in.layer.position == NormPosition::pre ? "residual_" : "norm_") + last;
  if (!in.attention.W_O.empty()) return "output";
  return in.attention.heads.size() > 1 ? "concat" : "head1.output";
}

// The scalar whose gradient is explained.
double weighted_output(const ExplainInput& in) {
  const NumberTable Y = step_of(explain_attention(in, {}), output_of(in)).values;
  if (in.dO.empty()) return Y.values.front();  // the loss
  double sum = 0;
  for (size_t i = 0; i < Y.values.size(); i++) sum += Y.values[i] * in.dO.values[i];
  return sum;
}

// Compares a gradient with central differences: error h² |f'''| / 6 plus rounding 1e-16 / h, both below 1e-8 here.
void expect_gradient(const ExplainInput& in, NumberTable& table, const NumberTable& gradient, const std::string& name) {
  constexpr double h = 1e-5;
  ASSERT_EQ(gradient.values.size(), table.values.size()) << name;
  for (size_t i = 0; i < table.values.size(); i++) {
    const double value = table.values[i];
    table.values[i] = value + h;
    const double above = weighted_output(in);
    table.values[i] = value - h;
    const double below = weighted_output(in);
    table.values[i] = value;
    EXPECT_NEAR(gradient.values[i], (above - below) / (2 * h), 1e-7) << name << " " << i;
  }
}

// The matrices of the input, with the ids of their gradients.
using GivenTables = std::vector<std::pair<std::string, NumberTable*>>;

void add_attention(ExplainedAttention& attention, const std::string& prefix, GivenTables& to) {
  for (size_t h = 0; h < attention.heads.size(); h++) {
    ExplainedHead& head = attention.heads[h];
    const std::string id = prefix + "head" + std::to_string(h + 1) + ".d";
    for (const auto& [name, table] : {std::pair{"W_Q", &head.W_Q},
                                      {"W_K", &head.W_K},
                                      {"W_V", &head.W_V},
                                      {"b_Q", &head.b_Q},
                                      {"b_K", &head.b_K},
                                      {"b_V", &head.b_V},
                                      {"Q", &head.Q},
                                      {"K", &head.K},
                                      {"V", &head.V}})
      to.push_back({id + name, table});
  }
  to.push_back({prefix + "dW_O", &attention.W_O});
  to.push_back({prefix + "db_O", &attention.b_O});
}

GivenTables given_tables(ExplainInput& in) {
  GivenTables all = {{"dX", &in.X}, {"dg", &in.memory}};
  add_attention(in.attention, "", all);
  add_attention(in.cross, "cross.", all);
  ExplainedLayer& layer = in.layer;
  for (const auto& [name, table] : {std::pair{"dW_1", &layer.W_1},
                                    {"db_1", &layer.b_1},
                                    {"dW_gate", &layer.W_gate},
                                    {"db_gate", &layer.b_gate},
                                    {"dW_2", &layer.W_2},
                                    {"db_2", &layer.b_2}})
    all.push_back({name, table});
  for (size_t k = 0; k < layer.norms.size(); k++) {
    all.push_back({"dgamma_" + std::to_string(k + 1), &layer.norms[k].gamma});
    all.push_back({"dbeta_" + std::to_string(k + 1), &layer.norms[k].beta});
  }
  all.push_back({"output.dW", &in.output.W});
  all.push_back({"output.db", &in.output.b});
  all.push_back({"dgamma_f", &in.output.norm.gamma});
  all.push_back({"dbeta_f", &in.output.norm.beta});
  return all;
}

// Compares the gradients of everything that is given.
void expect_gradients(ExplainInput in) {
  const Explanation steps = explain_attention(in, {.backward = true});
  for (const auto& [id, table] : given_tables(in))
    if (!table->empty()) expect_gradient(in, *table, step_of(steps, id).values, id);
}

class ExplainGradients : public ::testing::TestWithParam<bool> {};

TEST_P(ExplainGradients, EqualFiniteDifferences) { expect_gradients(random_input(GetParam())); }

TEST_P(ExplainGradients, EqualFiniteDifferencesWithoutAProjectionOfTheOutput) {
  ExplainInput in = random_input(GetParam());
  in.attention.W_O = in.attention.b_O = {};
  expect_gradients(in);
  in.attention.heads.pop_back();
  in.dO = columns_of(in.dO, 0, 2);
  expect_gradients(in);
}

TEST_P(ExplainGradients, OfALayerEqualFiniteDifferencesOfItsOutput) {
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh})
    expect_gradients(in_layer(random_input(GetParam()), kind));
}

TEST_P(ExplainGradients, OfALayerWithoutAProjectionOfTheOutput) {
  ExplainInput in = in_layer(random_input(GetParam()), Activation::gelu);
  in.attention.W_O = in.attention.b_O = {};  // two heads of width 2 are as wide as X
  expect_gradients(in);
}

TEST_P(ExplainGradients, OfALayerWithAGateAndEachKindAndPlaceOfTheNorm) {
  for (const NormPosition position : {NormPosition::post, NormPosition::pre})
    for (const NormKind norm : {NormKind::layer, NormKind::rms})
      expect_gradients(with_gate(in_layer(random_input(GetParam()), Activation::silu, position, norm)));
}

INSTANTIATE_TEST_SUITE_P(SelfAndCross, ExplainGradients, ::testing::Bool());

TEST(Explain, GradientsOfADecoderLayerEqualFiniteDifferences) {
  for (const NormPosition position : {NormPosition::post, NormPosition::pre})
    for (const NormKind norm : {NormKind::layer, NormKind::rms}) expect_gradients(random_decoder(position, norm));
}

TEST(Explain, GradientsOfTheLossEqualFiniteDifferences) {
  for (const double smoothing : {0.0, 0.1}) {
    expect_gradients(with_output(random_input(true), smoothing, false));  // of attention alone
    expect_gradients(with_output(random_decoder(NormPosition::post, NormKind::layer), smoothing, false));
    expect_gradients(with_output(random_decoder(NormPosition::pre, NormKind::rms), smoothing, true));
    expect_gradients(with_output(random_decoder(NormPosition::pre, NormKind::layer), smoothing, true));
  }
}

TEST(Explain, GradientsFromThoseOfLogitsEqualFiniteDifferences) {
  ExplainInput in = with_output(in_layer(random_input(false), Activation::relu), 0, true);
  in.output.labels = {};
  Random random(7, Stream::test);
  in.dO = random_table(3, 5, random);
  expect_gradients(in);
}

TEST(Explain, GradientsOfQueriesKeysAndValuesEqualFiniteDifferences) {
  ExplainInput in = random_queries();
  expect_gradients(in);
  in.attention.W_O = {};
  in.dO = columns_of(in.dO, 0, 4);
  expect_gradients(in);
}

TEST(Explain, GradientsOfTheExamplesEqualFiniteDifferences) {
  for (const auto example : {textbook_example, heads_example, decoder_example, language_model_example, queries_example})
    expect_gradients(example());
}

}  // namespace
}  // namespace qkv::testing
