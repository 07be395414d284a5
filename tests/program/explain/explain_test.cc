// program/explain/explain.h: the textbook's example to the last digit, gradients against finite differences, and
// refused inputs.
#include "program/explain/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "program/explain/tables.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

const ExplainedStep& step_of(const Explanation& explanation, const std::string& id) {
  for (const ExplainedSection& section : explanation)
    for (const ExplainedStep& step : section.steps)
      if (step.id == id) return step;
  throw Error("no step " + id);
}

void expect_near(const NumberTable& table, const nlohmann::json& rows, double tolerance, const std::string& name) {
  ASSERT_EQ(table.rows, std::ssize(rows)) << name;
  for (int64_t r = 0; r < table.rows; r++)
    for (int64_t c = 0; c < table.columns; c++) {
      const nlohmann::json& row = rows[static_cast<size_t>(r)];
      const double expected = row.is_array() ? row[static_cast<size_t>(c)].get<double>() : row.get<double>();
      EXPECT_NEAR(table.at(r, c), expected, tolerance) << name << " " << r << ", " << c;
    }
}

TEST(Explain, TheTextbooksExampleHasTheGoldenValues) {
  const std::string path = QKV_SHARED_DIR "/cases/worked-example/example.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
  const nlohmann::json golden = nlohmann::json::parse(std::ifstream(path));
  const ExplainInput in = textbook_example();
  EXPECT_EQ(in.tokens, golden["tokens"].get<std::vector<std::string>>());
  const Explanation steps = explain_attention(in);
  for (const auto& [id, name] : {std::pair{"X", "X"}, {"head1.W_Q", "W_Q"}, {"head1.W_K", "W_K"}, {"head1.W_V", "W_V"}})
    expect_near(step_of(steps, id).values, golden[name], 0, name);
  const std::pair<const char*, const char*> computed[] = {
      {"Q", "Q"},           {"K", "K"},     {"V", "V"},       {"scores", "scores"},
      {"scaled", "scaled"}, {"exp", "exp"}, {"weights", "A"}, {"row_sums", "row_sum"},
      {"output", "Z"}};
  for (const auto& [id, name] : computed) {
    const NumberTable& values = step_of(steps, std::string("head1.") + id).values;
    expect_near(values, golden["exact"][name], 1e-12, name);
    if (name != std::string("exp") && name != std::string("row_sum"))  // the textbook's are off in the second digit
      expect_near(values, golden["printed"][name], 5e-4, name);
  }
  EXPECT_NEAR(1 / in.factor(), golden["exact"]["sqrt_dk"].get<double>(), 1e-15);
  expect_near(explain_positions(4, 3).steps.front().values, golden["exact"]["PE"], 1e-12, "PE");
}

TEST(Explain, TheTextbooksExampleIsPrintedWithThreeDigits) {
  const std::string text = explanation_to_text(explain_attention(textbook_example()));
  EXPECT_NE(text.find("A = softmax(S): E divided by its row sums\n         Chai   piyo\n  Chai  0.056  0.944\n"
                      "  piyo  0.944  0.056\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("O = A V\n  Chai  0.112  1.888\n  piyo  1.888  0.112\n"), std::string::npos) << text;
}

NumberTable random_table(int64_t rows, int64_t columns, Random& random) {
  NumberTable table{rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
  for (double& value : table.values) value = random.normal();
  return table;
}

// Two heads over three tokens, of which the mask hides one from another.
ExplainInput random_input(bool cross) {
  Random random(1, Stream::test);
  ExplainInput in;
  in.tokens = {"a", "b", "c"};
  in.X = random_table(3, 4, random);
  if (cross) in.memory_tokens = {"u", "v"}, in.memory = random_table(2, 4, random);
  for (int h = 0; h < 2; h++)
    in.heads.push_back({random_table(4, 3, random), random_table(4, 3, random), random_table(4, 2, random)});
  in.W_O = random_table(4, 4, random);
  in.mask = random_table(3, cross ? 2 : 3, random);
  in.mask.at(1, 0) = -std::numeric_limits<double>::infinity();
  in.causal = !cross;
  in.dO = random_table(3, 4, random);
  return in;
}

// The id of the step whose gradient is dO.
std::string output_of(const ExplainInput& in) {
  if (!in.layer.empty()) return "norm_2";
  if (!in.W_O.empty()) return "output";
  return in.heads.size() > 1 ? "concat" : "head1.output";
}

// The scalar whose gradient is explained.
double weighted_output(const ExplainInput& in) {
  const NumberTable Y = step_of(explain_attention(in), output_of(in)).values;
  double sum = 0;
  for (size_t i = 0; i < Y.values.size(); i++) sum += Y.values[i] * in.dO.values[i];
  return sum;
}

// Compares a gradient with central differences: error h² |f'''| / 6 plus rounding 1e-16 / h, both below 1e-8 here.
void expect_gradient(const ExplainInput& in, NumberTable& table, const NumberTable& gradient, const std::string& name) {
  constexpr double h = 1e-5;
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

// Compares every gradient that is explained.
void expect_gradients(ExplainInput in) {
  const Explanation steps = explain_attention(in);
  const auto gradient = [&](const std::string& id) { return step_of(steps, id).values; };
  expect_gradient(in, in.X, gradient("dX"), "X");
  if (!in.memory.empty()) expect_gradient(in, in.memory, gradient("dM"), "memory");
  if (!in.W_O.empty()) expect_gradient(in, in.W_O, gradient("dW_O"), "W_O");
  for (size_t h = 0; h < in.heads.size(); h++) {
    const std::string head = "head" + std::to_string(h + 1) + ".";
    expect_gradient(in, in.heads[h].W_Q, gradient(head + "dW_Q"), "W_Q");
    expect_gradient(in, in.heads[h].W_K, gradient(head + "dW_K"), "W_K");
    expect_gradient(in, in.heads[h].W_V, gradient(head + "dW_V"), "W_V");
  }
  if (in.layer.empty()) return;
  ExplainedLayer& layer = in.layer;
  for (const auto& [name, table] : {std::pair{"gamma_1", &layer.gamma_1},
                                    {"beta_1", &layer.beta_1},
                                    {"W_1", &layer.W_1},
                                    {"b_1", &layer.b_1},
                                    {"W_2", &layer.W_2},
                                    {"b_2", &layer.b_2},
                                    {"gamma_2", &layer.gamma_2},
                                    {"beta_2", &layer.beta_2}})
    expect_gradient(in, *table, gradient(std::string("d") + name), name);
}

// `in` as the attention of a layer of random weights.
ExplainInput in_layer(ExplainInput in, Activation kind) {
  Random random(2, Stream::test);
  ExplainedLayer& layer = in.layer;
  layer.W_1 = random_table(4, 5, random), layer.b_1 = random_table(1, 5, random);
  layer.W_2 = random_table(5, 4, random), layer.b_2 = random_table(1, 4, random);
  layer.gamma_1 = random_table(1, 4, random), layer.beta_1 = random_table(1, 4, random);
  layer.gamma_2 = random_table(1, 4, random), layer.beta_2 = random_table(1, 4, random);
  layer.activation = kind;
  layer.epsilon = 0.1;
  return in;
}

class ExplainGradients : public ::testing::TestWithParam<bool> {};

TEST_P(ExplainGradients, EqualFiniteDifferences) { expect_gradients(random_input(GetParam())); }

TEST_P(ExplainGradients, EqualFiniteDifferencesWithoutAProjectionOfTheOutput) {
  ExplainInput in = random_input(GetParam());
  in.W_O = {};
  expect_gradients(in);
  in.heads.pop_back();
  in.dO = columns_of(in.dO, 0, 2);
  expect_gradients(in);
}

TEST_P(ExplainGradients, OfALayerEqualFiniteDifferencesOfItsOutput) {
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_tanh})
    expect_gradients(in_layer(random_input(GetParam()), kind));
}

TEST_P(ExplainGradients, OfALayerWithoutAProjectionOfTheOutput) {
  ExplainInput in = in_layer(random_input(GetParam()), Activation::gelu);
  in.W_O = {};  // two heads of width 2 are as wide as X
  expect_gradients(in);
}

INSTANTIATE_TEST_SUITE_P(SelfAndCross, ExplainGradients, ::testing::Bool());

TEST(Explain, TheStepsAgreeWithEachOther) {
  const Explanation steps = explain_attention(random_input(false));
  const auto values = [&](const std::string& id) { return step_of(steps, "head2." + id).values; };
  const NumberTable A = values("weights"), E = values("exp"), sums = values("row_sums"), dA = values("dA");
  for (int64_t i = 0; i < A.rows; i++) {
    const NumberTable J = values("jacobian" + std::to_string(i + 1));
    for (int64_t j = 0; j < A.columns; j++) {
      EXPECT_NEAR(A.at(i, j), E.at(i, j) / sums.at(i, 0), 1e-14);
      EXPECT_EQ(A.at(i, j) == 0, j > i || (i == 1 && j == 0));
      double dS = 0;
      for (int64_t k = 0; k < A.columns; k++) dS += dA.at(i, k) * J.at(k, j);
      EXPECT_NEAR(values("dS").at(i, j), dS, 1e-13);
    }
  }
}

TEST(Explain, LargeScoresAreShownRelativeToTheLargestOfTheRow) {
  ExplainInput in = textbook_example();
  for (double& x : in.X.values) x *= 100;
  const Explanation steps = explain_attention(in);
  EXPECT_NEAR(step_of(steps, "head1.exp").values.at(0, 1), 1, 1e-15);
  EXPECT_NEAR(step_of(steps, "head1.weights").values.at(0, 1), 1, 1e-15);
  for (double& x : in.X.values) x *= 1e200;
  EXPECT_EQ(::qkv::testing::error_of([&] { explain_attention(in); }),
            "explain: scores is not finite: the numbers given are too large");
}

TEST(Explain, ALayerNormalizesItsRows) {
  const Explanation steps = explain_attention(layer_example());
  for (const char* id : {"norm_1", "norm_2"}) {
    const NumberTable& N = step_of(steps, id).values;
    for (int64_t r = 0; r < N.rows; r++) {
      double sum = 0, squares = 0;
      for (int64_t c = 0; c < N.columns; c++) sum += N.at(r, c), squares += N.at(r, c) * N.at(r, c);
      EXPECT_NEAR(sum, 0, 1e-13);
      EXPECT_NEAR(squares / static_cast<double>(N.columns), 1, 1e-4);  // ε lowers it
    }
  }
}

TEST(Explain, DotProductsOfPositionsDependOnTheDistanceAlone) {
  const NumberTable dots = explain_positions(64, 1).steps[1].values;
  for (int64_t i = 0; i < dots.rows; i++) EXPECT_NEAR(dots.at(i, 0), dots.at(i, 1), 1e-10);
  EXPECT_NEAR(dots.at(0, 0), 32, 1e-12);
}

TEST(Explain, WithoutTheFactorScoresGrowAndGradientsVanish) {
  const NumberTable found = explain_scaling().steps.front().values;
  const int64_t last = found.rows - 1;
  for (int64_t r = 0; r <= last; r++) {
    const double d_k = static_cast<double>(4 << r);
    EXPECT_NEAR(found.at(r, 0) / d_k, found.at(r, 1), 1e-6 * found.at(r, 1));
    EXPECT_NEAR(found.at(r, 1), 1, 0.3);  // the spread of 64 rows of 4 numbers
  }
  EXPECT_LT(found.at(last, 2), 0.1);
  EXPECT_GT(found.at(last, 3), 0.8);
  EXPECT_LT(found.at(last, 4), found.at(last, 5) / 2);
}

TEST(Explain, InputsSurviveJson) {
  for (const ExplainInput& in : {textbook_example(), layer_example(), random_input(false), random_input(true),
                                 in_layer(random_input(true), Activation::silu)}) {
    const std::string json = explain_input_to_json(in);
    EXPECT_EQ(explain_input_to_json(explain_input_from_json(json, "x")), json);
  }
}

TEST(Explain, StepsAreJson) {
  const nlohmann::json json = nlohmann::json::parse(explanation_to_json(explain_attention(random_input(false))));
  EXPECT_EQ(json["sections"][0]["steps"][0]["id"], "X");
  EXPECT_TRUE(json["sections"][0]["steps"][1]["values"][1][0].is_null());  // the mask's −∞
}

TEST(Explain, RefusesInputsByName) {
  const std::string w = R"("W_Q": [[1], [2]], "W_K": [[1], [2]], "W_V": [[1], [2]])";
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "f: expected an object"},
      {"{}", "f: X is missing"},
      {R"({"X": 1})", "f: X: expected an array of 1 to 64 rows"},
      {R"({"X": [[1, 2], [3]]})", "f: X: a row has 1 numbers, expected 2"},
      {R"({"X": [[1, "2"]]})", "f: X: expected numbers"},
      {R"({"X": [[1, 2]]})", "f: W_Q is missing"},
      {R"({"X": [[1, 2, 3]], )" + w + "}", "f: W_Q is 2 × 1, expected 3 × 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "x": 1})", "f: unknown member \"x\""},
      {R"({"X": [[1, 2]], )" + w + R"(, "tokens": ["a", "b"]})", "f: tokens has 2 labels, expected 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "causal": 1})", "f: causal must be true or false"},
      {R"({"X": [[1, 2]], )" + w + R"(, "memory": [[1, 2]], "causal": true})",
       "f: causal is true, expected false with a memory"},
      {R"({"X": [[1, 2]], )" + w + R"(, "mask": [[1, 2]]})", "f: mask is 1 × 2, expected 1 × 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "dO": [[1, 2]]})", "f: dO is 1 × 2, expected 1 × 1"},
      {R"({"X": [[1, 2]], "heads": []})", "f: 0 heads, expected 1 to 16"},
      {R"({"X": [[1, 2]], "heads": [1]})", "f: heads: 1: expected an object"},
      {R"({"X": [[1, 2]], )" + w + R"(, "layer": {"W_1": [[1], [1]], "W_2": [[1, 1]]}})",
       "f: layer: the attention's output has width 1, expected that of X, 2: give W_O"},
      {R"({"X": [[1, 2]], )" + w + R"(, "layer": {"W_1": [[1]], "W_2": [[1]], "activation": "tanh"}})",
       "f: layer: activation must be one of relu, gelu, silu, gelu_tanh"}};
  for (const auto& [json, expected] : cases)
    EXPECT_EQ(::qkv::testing::error_of([&] { explain_input_from_json(json, "f"); }), expected);
}

}  // namespace
}  // namespace qkv
