// program/explain/explain.h: the textbook's example to the last digit, how steps follow from each other, and refused
// inputs.
#include "program/explain/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/random.h"
#include "program/explain/tables.h"
#include "tests/program/explain/explain_cases.h"
#include "tests/support/errors.h"
#include "text/visible.h"

namespace qkv::testing {
namespace {

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
  const Explanation steps = explain_attention(in, {});
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
  EXPECT_NEAR(1 / in.attention.factor(), golden["exact"]["sqrt_dk"].get<double>(), 1e-15);
  expect_near(explain_positions(4, 3).steps.front().values, golden["exact"]["PE"], 1e-12, "PE");
}

TEST(Explain, TheTextbooksExampleIsPrintedWithThreeDigits) {
  const std::string text = explanation_to_text(explain_attention(textbook_example(), {}));
  EXPECT_NE(text.find("A = softmax(S): E divided by its row sums\n         Chai   piyo\n  Chai  0.056  0.944\n"
                      "  piyo  0.944  0.056\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("O = A V\n  Chai  0.112  1.888\n  piyo  1.888  0.112\n"), std::string::npos) << text;
}

TEST(Explain, TokensAsColumnsAreTheTransposedSteps) {
  ExplainInput in = with_output(random_decoder(NormPosition::post, NormKind::layer), 0.1, false);
  const Explanation rows = explain_attention(in, {.backward = true});
  in.columns = true;
  const Explanation columns = explain_attention(in, {.backward = true});
  ASSERT_EQ(columns.size(), rows.size() + 1);
  EXPECT_FALSE(columns.front().symbols.empty());
  for (size_t s = 0; s < rows.size(); s++)
    for (size_t i = 0; i < rows[s].steps.size(); i++) {
      const ExplainedStep &row = rows[s].steps[i], &column = columns[s + 1].steps[i];
      EXPECT_EQ(column.id, row.id);
      EXPECT_EQ(column.values.values, transposed(row.values).values) << row.id;
      EXPECT_EQ(column.row_labels, row.column_labels);
      EXPECT_EQ(column.column_labels, row.row_labels);
    }
  const std::pair<std::string, std::string> formulas[] = {{"head1.Q", "Q = β_q 1ᵀ + Ω_q X"},
                                                          {"head1.scores", "scores = Kᵀ Q"},
                                                          {"head1.output", "O = V A"},
                                                          {"head1.dW_Q", "dΩ_q = dQ Xᵀ"},
                                                          {"head1.dK", "dK = Q d(Kᵀ Q)ᵀ"},
                                                          {"output", "Y_1 = β_c 1ᵀ + Ω_c O"},
                                                          {"cross.head1.K", "K = β_k 1ᵀ + Ω_k g"},
                                                          {"beta_1", "δ_1 = "},
                                                          {"hidden", "H = β_1 1ᵀ + Ω_1 N_2"},
                                                          {"output.logits", "Z = β_u 1ᵀ + Ω_u N_3"}};
  for (const auto& [id, expected] : formulas) {
    const ExplainedStep& step = step_of(columns, id);
    EXPECT_EQ(step.name + " = " + step.formula, expected);
  }
}

TEST(Explain, ArithmeticWritesOutEachEntry) {
  const Explanation steps = explain_attention(textbook_example(), {.arithmetic = true});
  EXPECT_EQ(step_of(steps, "head1.Q").arithmetic.front(), "1×1 + 0×0 + 1×1 + 0×0 = 2");
  EXPECT_EQ(step_of(steps, "head1.scaled").arithmetic[1], "4 / √2 = 2.828");
  EXPECT_EQ(step_of(steps, "head1.exp").arithmetic[1], "exp(2.828) = 16.919");
  EXPECT_EQ(step_of(steps, "head1.row_sums").arithmetic[0], "1 + 16.919 = 17.919");
  EXPECT_EQ(step_of(steps, "head1.weights").arithmetic[1], "16.919 / 17.919 = 0.944");
  EXPECT_TRUE(step_of(steps, "head1.W_Q").arithmetic.empty());
}

TEST(Explain, ThePredictedTokenHasTheLargestProbabilityAndTheLossIsThatOfTheLabels) {
  const Explanation steps = explain_attention(decoder_example(), {});
  const std::vector<int32_t> labels = decoder_example().output.labels;
  const NumberTable P = step_of(steps, "output.probabilities").values;
  const ExplainedStep& predicted = step_of(steps, "output.predicted");
  double loss = 0;
  for (int64_t i = 0; i < P.rows; i++) {
    double total = 0;
    int64_t best = 0;
    for (int64_t v = 0; v < P.columns; v++) {
      total += P.at(i, v);
      if (P.at(i, v) > P.at(i, best)) best = v;
    }
    EXPECT_NEAR(total, 1, 1e-15);
    EXPECT_EQ(predicted.values.at(i, 0), P.at(i, best));
    EXPECT_EQ(predicted.row_labels[static_cast<size_t>(i)],
              decoder_example().tokens[static_cast<size_t>(i)] + " → " +
                  decoder_example().output.vocabulary[static_cast<size_t>(best)]);
    loss -= std::log(P.at(i, labels[static_cast<size_t>(i)]));
  }
  EXPECT_NEAR(step_of(steps, "output.loss").values.at(0, 0), loss, 1e-14);
}

TEST(Explain, TheStepsAgreeWithEachOther) {
  const Explanation steps = explain_attention(random_input(false), {.backward = true});
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
  const Explanation steps = explain_attention(in, {});
  EXPECT_NEAR(step_of(steps, "head1.exp").values.at(0, 1), 1, 1e-15);
  EXPECT_NEAR(step_of(steps, "head1.weights").values.at(0, 1), 1, 1e-15);
  for (double& x : in.X.values) x *= 1e200;
  EXPECT_EQ(error_of([&] { explain_attention(in, {}); }),
            "explain: scores is not finite: the numbers given are too large");
}

// Two tokens, one head of width 1: scores −40·40 and −40·39 in the first row.
TEST(Explain, VerySmallScoresAreShownRelativeToTheLargestOfTheRow) {
  const ExplainInput in = explain_input_from_json(
      R"({"X": [[40], [39]], "W_Q": [[1]], "W_K": [[-1]], "W_V": [[1]], "output": {"W": [[-9, -10]]}})", "x");
  const Explanation steps = explain_attention(in, {.arithmetic = true});
  const ExplainedStep &E = step_of(steps, "head1.exp"), &A = step_of(steps, "head1.weights");
  EXPECT_EQ(E.formula, "exp(S − the largest of the row)");
  EXPECT_EQ(E.arithmetic[0], "exp((-1600) − (-1560)) = 4.248e-18");
  EXPECT_EQ(A.arithmetic[1], "1 / 1 = 1");
  EXPECT_NEAR(A.values.at(0, 0), std::exp(-40), 1e-30);
  // The logits are −9 · 39 and −10 · 39, up to e⁻³⁹ of 40.
  EXPECT_NEAR(step_of(steps, "output.exp").values.at(0, 1), std::exp(-39), 1e-28);
  EXPECT_NEAR(step_of(steps, "output.row_sums").values.at(0, 0), 1, 1e-15);
}

// A row that sees no key does not change how the exponentials of the others are shown, and its own are 0.
TEST(Explain, ARowWithoutKeysHasNoLargestScore) {
  const std::string input = R"({"X": [[1], [2]], "W_Q": [[1]], "W_K": [[1]], "W_V": [[1]], "mask": )";
  const auto exponentials = [&](const std::string& mask) {
    return step_of(explain_attention(explain_input_from_json(input + mask + "}", "x"), {}), "head1.exp");
  };
  EXPECT_EQ(exponentials("[[0, 0], [null, null]]").formula, "exp(S′)");
  EXPECT_EQ(exponentials("[[-1000, -1001], [null, null]]").formula, "exp(S′ − the largest of the row)");
  EXPECT_EQ(exponentials("[[-1000, -1001], [null, null]]").values.values,
            (std::vector<double>{1, std::exp(2.0 - 1001 - (1.0 - 1000)), 0, 0}));
}

TEST(Explain, RefusesMinusInfinityExceptWhereAMaskHidesAKey) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"X": [[1e200], [1e200]], "W_Q": [[-1e200]], "W_K": [[1]], "W_V": [[1]]})", "Q"},
      {R"({"X": [[1e200], [1e200]], "W_Q": [[-1]], "W_K": [[1]], "W_V": [[1]]})", "scores"},
      {R"({"Q": [[-1e100]], "K": [[1e100]], "V": [[1]], "scale": 1e200})", "S"},
      {R"({"Q": [[-1e154]], "K": [[1e154]], "V": [[1]], "mask": [[-1.7e308]]})", "S′"},
      {R"({"Q": [[1]], "K": [[1]], "V": [[-1e200]], "W_O": [[1e200]]})", "Y"}};
  for (const auto& [json, name] : cases)
    EXPECT_EQ(error_of([&] { explain_attention(explain_input_from_json(json, "x"), {}); }),
              std::string("explain: ") + name + " is not finite: the numbers given are too large")
        << json;
  ExplainInput in = textbook_example();
  in.X.at(0, 0) = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { explain_attention(in, {}); }), "explain: X is not finite: the numbers given are too large");
  in = textbook_example();
  in.attention.causal = true;
  EXPECT_EQ(step_of(explain_attention(in, {}), "head1.masked").values.at(0, 1),
            -std::numeric_limits<double>::infinity());
}

// 64 tokens of width 64, and heads of that width.
ExplainInput wide_input(int heads, Random& random) {
  ExplainInput in;
  in.tokens = std::vector<std::string>(64, "t");
  in.X = random_table(64, 64, random);
  for (int h = 0; h < heads; h++)
    in.attention.heads.push_back(
        {random_table(64, 64, random), random_table(64, 64, random), random_table(64, 64, random)});
  return in;
}
ExplainInput wide_input(int heads) {
  Random random(1, Stream::test);
  return wide_input(heads, random);
}

// A head of width d over T tokens has 3 T d products of d numbers, T² scores, and T d outputs of T numbers.
TEST(Explain, RefusesArithmeticThatFillsTheMemory) {
  const Explanation one = explain_attention(wide_input(1), {.arithmetic = true});
  size_t bytes = 0;
  for (const ExplainedSection& section : one)
    for (const ExplainedStep& step : section.steps)
      for (const std::string& text : step.arithmetic) bytes += text.size();
  EXPECT_GT(bytes, 10'000'000u);
  EXPECT_LT(bytes, 50'000'000u);
  const std::string error = error_of([&] { explain_attention(wide_input(2), {.arithmetic = true}); });
  EXPECT_TRUE(error.starts_with("explain: the arithmetic has ") &&
              error.ends_with(" terms, expected at most 1500000: give smaller matrices or fewer heads"))
      << error;
  EXPECT_NO_THROW(explain_attention(wide_input(2), {}));
}

// A head of 64 tokens of width 64 has 64 Jacobians of 64² numbers, and 21 matrices of 64².
TEST(Explain, RefusesStepsThatFillTheMemory) {
  const auto input = [](int heads) {
    Random random(1, Stream::test);
    ExplainInput in = wide_input(heads, random);
    in.dO = random_table(64, 64 * heads, random);
    return in;
  };
  EXPECT_NO_THROW(explain_attention(input(5), {.backward = true}));
  EXPECT_NO_THROW(explain_attention(input(6), {}));
  EXPECT_EQ(error_of([&] { explain_attention(input(6), {.backward = true}); }),
            "explain: the steps have more than 2000000 numbers: give smaller matrices or fewer heads");
}

TEST(Explain, SentencesSayWhatTheNumbersShow) {
  const Explanation one = explain_attention(textbook_example(), {});
  EXPECT_EQ(step_of(one, "head1.scores").note, R"("Chai" matches "piyo" best (4); "piyo" matches "Chai" best (4).)");
  EXPECT_EQ(step_of(one, "head1.weights").note,
            R"("Chai" attends mostly to "piyo" (0.944); "piyo" attends mostly to "Chai" (0.944).)");
  EXPECT_EQ(step_of(one, "head1.output").note,
            R"("Chai" gets 0.944 of the value of "piyo" + 0.056 of its own value; "piyo" gets 0.944 of the value of )"
            R"("Chai" + 0.056 of its own value.)");
  EXPECT_EQ(step_of(explain_attention(heads_example(), {}), "head2.weights").note,
            R"("Chai" attends mostly to itself (0.944); "piyo" attends mostly to itself (0.944).)");
  EXPECT_EQ(step_of(explain_attention(layer_example(), {}), "activation").note, "relu makes 6 of 8 numbers 0.");
  const Explanation decoder = explain_attention(decoder_example(), {.backward = true});
  EXPECT_EQ(step_of(decoder, "head1.masked").note, "1 of 4 scores is hidden (−∞).");
  EXPECT_TRUE(step_of(decoder, "dg").note.starts_with(R"(A change of "Chai" has the largest effect)"));
}

// Seven tokens with the same key, a mask that hides all keys of the second, and all but two of the third.
TEST(Explain, SentencesAreShortAndTrueOfEveryKindOfRow) {
  ExplainInput in;
  ExplainedHead head;
  head.Q = zero_table(7, 1), head.K = zero_table(7, 1), head.V = zero_table(7, 1);
  in.attention.heads = {head};
  for (int i = 1; i <= 7; i++) in.tokens.push_back("t" + std::to_string(i));
  in.memory_tokens = in.tokens;
  in.attention.mask = zero_table(7, 7);
  for (int64_t j = 0; j < 7; j++) {
    in.attention.mask.at(1, j) = -std::numeric_limits<double>::infinity();
    if (j > 1) in.attention.mask.at(2, j) = -std::numeric_limits<double>::infinity();
  }
  const Explanation steps = explain_attention(in, {});
  EXPECT_EQ(step_of(steps, "head1.weights").note,
            R"("t1" attends to all keys equally (0.143 each); "t2" attends to no key; "t3" attends most to "t1" and )"
            R"("t2" (0.5 each); "t4" attends to all keys equally (0.143 each); 3 more.)");
  EXPECT_EQ(step_of(steps, "head1.masked").note, "12 of 49 scores are hidden (−∞).");
}

// Tokens come from a file: they must not control a terminal, nor fill it.
TEST(Explain, SentencesHaveHarmlessTokens) {
  ExplainInput in;
  ExplainedHead head;
  head.Q = zero_table(2, 1), head.K = zero_table(2, 1), head.V = zero_table(2, 1);
  head.Q.at(0, 0) = head.K.at(0, 0) = 1;
  in.attention.heads = {head};
  in.tokens = {"a\x1b[31m\nb", std::string(3000, 'x')};
  in.memory_tokens = in.tokens;
  const std::string text = explanation_to_text(explain_attention(in, {}));
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_NE(text.find(" matches \"a"), text.npos);
  EXPECT_EQ(text.find("itself"), text.npos) << "given queries and keys need not be of the same tokens";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width(line), 100u) << line;
}

TEST(Explain, LinesHaveAtMostOneHundredColumns) {
  const std::string text = explanation_to_text({explain_positions(64, 3)});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width(line), 100u) << line;
  EXPECT_NE(text.find("\n          sin ω0   cos ω0"), std::string::npos) << text;
  EXPECT_NE(text.find("cos ω31\n"), std::string::npos) << text;
}

// Σᵢ cos(ωᵢ k) of 32 frequencies falls until k = 16; of 4, until k = 3.
TEST(Explain, NearPositionsAreSimilar) {
  EXPECT_EQ(
      explain_positions(64, 1).steps[1].note,
      "Each position has the length √(d/2) = √32. Near positions are similar: the dot product falls from 32.00 at "
      "distance 0 to 19.37 at distance 16. It rises again at distance 24; with a larger width, later and less.");
  EXPECT_NE(explain_positions(8, 1).steps[1].note.find("to 1.96 at distance 3. It rises again at distance 4;"),
            std::string::npos);
}

TEST(Explain, ALayerNormalizesItsRows) {
  const Explanation steps = explain_attention(layer_example(), {});
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
  for (const ExplainInput& in : {textbook_example(), layer_example(), decoder_example(), language_model_example(),
                                 queries_example(), random_input(false), random_input(true), random_queries(),
                                 with_gate(in_layer(random_input(true), Activation::silu)),
                                 with_output(random_decoder(NormPosition::pre, NormKind::rms), 0.1, true)}) {
    const std::string json = explain_input_to_json(in);
    EXPECT_EQ(explain_input_to_json(explain_input_from_json(json, "x")), json);
  }
}

TEST(Explain, StepsAreJson) {
  const nlohmann::json json =
      nlohmann::json::parse(explanation_to_json(explain_attention(random_input(false), {.arithmetic = true})));
  EXPECT_EQ(json["sections"][0]["steps"][0]["id"], "X");
  EXPECT_TRUE(json["sections"][0]["steps"][1]["values"][1][0].is_null());  // the mask's −∞
  EXPECT_FALSE(json["sections"][0]["steps"][0].contains("arithmetic"));
  const nlohmann::json& Q = json["sections"][1]["steps"][6];
  EXPECT_EQ(Q["id"], "head1.Q");
  EXPECT_EQ(Q["arithmetic"].size(), 3);
  EXPECT_EQ(Q["arithmetic"][0].size(), 3);
}

// Labels without the matrix that they name would be those of another one.
TEST(Explain, RefusesWhatBelongsToAnAbsentPart) {
  const auto refusal = [](const auto& change) {
    ExplainInput in = textbook_example();
    change(in);
    return error_of([&] { explain_attention(in, {}); });
  };
  EXPECT_EQ(refusal([](ExplainInput& in) {
              in.cross.mask = {1, 1, {0}};
            }),
            "explain: cross is given without heads, expected none");
  EXPECT_EQ(refusal([](ExplainInput& in) {
              in.layer.b_1 = {1, 1, {0}};
            }),
            "explain: layer is given without W_1, expected none");
  EXPECT_EQ(refusal([](ExplainInput& in) { in.output.vocabulary = {"a"}; }),
            "explain: output is given without W, expected none");
  EXPECT_EQ(refusal([](ExplainInput& in) {
              in.output.labels = {0, 0};
            }),
            "explain: output is given without W, expected none");
  EXPECT_EQ(refusal([](ExplainInput& in) { in.memory.rows = 2; }),
            "explain: memory is 2 × 0, expected 1 to 64 rows and columns");
}

TEST(Explain, RefusesInputsByName) {
  const std::string w = R"("W_Q": [[1], [2]], "W_K": [[1], [2]], "W_V": [[1], [2]])";
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "f: expected an object"},
      {"{}", "f: X is missing, expected X and weights, or Q, K and V"},
      {R"({"X": 1})", "f: X: expected an array of 1 to 64 rows"},
      {R"({"X": [[1, 2], [3]]})", "f: X: a row has 1 numbers, expected 2"},
      {R"({"X": [[1, "2"]]})", "f: X: expected numbers"},
      {R"({"X": [[1, 2]]})", "f: W_Q is missing"},
      {R"({"X": [[1, 2, 3]], )" + w + "}", "f: W_Q is 2 × 1, expected 3 × 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "W_O": [[1, 1]], "layer": {"W_1": [[1], [1]], "W_2": [[1, 1]], "x": 1}})",
       "f: layer: unknown member \"x\", expected W_1, b_1, W_gate, b_gate, W_2, b_2, norm_position, norm, gamma_1, "
       "beta_1, gamma_2, beta_2, epsilon, activation"},
      {R"({"X": [[1, 2]], )" + w + R"(, "tokens": ["a", "b"]})", "f: tokens has 2 labels, expected 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "memory_tokens": ["a"], "dO": [[1]]})",
       "f: memory_tokens is given without memory, expected none"},
      {R"({"X": [[1, 2]], "memory": [[1, 2]], )" + w + R"(, "memory_tokens": ["a", "b"]})",
       "f: memory_tokens has 2 labels, expected 1"},
      {R"({"Q": [[1]], "K": [[1]], "V": [[1]], "memory_tokens": []})", "f: memory_tokens has 0 labels, expected 1"},
      {R"({"Q": [[1]], "K": [[1]], "V": [[1]], "tokens": ["a", "b"]})", "f: tokens has 2 labels, expected 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "output": {"W": [[1]], "vocabulary": [], "labels": [0]}})",
       "f: output: vocabulary has 0 labels, expected 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "output": {"W": [[1]], "vocabulary": ["a", "b"], "labels": ["b"]}})",
       "f: output: vocabulary has 2 labels, expected 1"},
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
       "f: layer: activation must be one of relu, gelu, silu, gelu_tanh"},
      {R"({"heads": [{"W_Q": [[1]], "W_K": [[1]], "W_V": [[1]]}]})",
       "f: X is missing, expected X and weights, or Q, K and V"},
      {R"({"Q": [[1]], "K": [[1]]})", "f: V is missing"},
      {R"({"Q": [[1]], "K": [[1, 2]], "V": [[1]]})", "f: K is 1 × 2, expected 1 × 1"},
      {R"({"X": [[1]], "Q": [[1]], "K": [[1]], "V": [[1]]})", "f: X is given with Q, K and V, expected none"},
      {R"({"Q": [[1]], "K": [[1], [2]], "V": [[1], [2]], "causal": true})",
       "f: causal is true, expected false where Q has 1 rows and K has 2"},
      {R"({"Q": [[1]], "K": [[1]], "V": [[1]], "layer": {"W_1": [[1]], "W_2": [[1]]}})",
       "f: layer is given without X, expected none"},
      {R"({"X": [[1, 2]], )" + w + R"(, "b_Q": [1, 2]})", "f: b_Q is 1 × 2, expected 1 × 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "b_O": [1]})", "f: b_O is given without W_O, expected none"},
      {R"({"X": [[1, 2]], )" + w + R"(, "form": "both"})", "f: form must be one of rows, columns"},
      {R"({"X": [[1, 2]], )" + w + R"(, "cross": {)" + w + "}}", "f: cross is given without memory, expected none"},
      {R"({"X": [[1, 2]], "memory": [[1, 2]], )" + w + R"(, "cross": {)" + w + "}}",
       "f: cross is given without layer, expected none"},
      {R"({"X": [[1, 2]], "memory": [[1]], )" + w + "}", "f: W_K is 2 × 1, expected 1 × 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "W_O": [[1, 1]], "layer": {"W_1": [[1], [1]], "W_2": [[1, 1]], "norm": "rms",
        "beta_1": [1, 1]}})",
       "f: layer: beta_1 is given with the norm rms, expected none"},
      {R"({"X": [[1, 2]], )" + w + R"(, "W_O": [[1, 1]], "layer": {"W_1": [[1], [1]], "W_2": [[1, 1]],
        "norm_position": "query"}})",
       "f: layer: norm_position must be one of post, pre"},
      {R"({"X": [[1, 2]], )" + w +
           R"(, "W_O": [[1, 1]], "layer": {"W_1": [[1], [1]], "W_2": [[1, 1]], "b_gate": [1]}})",
       "f: layer: b_gate is given without W_gate, expected none"},
      {R"({"X": [[1, 2]], )" + w + R"(, "output": {"W": [[1], [1]]}})", "f: output: W is 2 × 1, expected 1 × 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "output": {"W": [[1, 2]], "labels": [2]}})",
       "f: output: label 2, expected 0 to 1, or a token of the vocabulary"},
      {R"({"X": [[1, 2]], )" + w + R"(, "output": {"W": [[1, 2]], "labels": ["c"]}})",
       "f: output: label \"c\", expected 0 to 1, or a token of the vocabulary"},
      {R"({"X": [[1, 2]], )" + w + R"(, "output": {"W": [[1, 2]], "labels": [0, 1]}})",
       "f: output: 2 labels, expected 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "output": {"W": [[1, 2]], "label_smoothing": 1}})",
       "f: output: label_smoothing is 1, expected a number from 0 to below 1"},
      {R"({"X": [[1, 2]], )" + w + R"(, "dO": [[1]], "output": {"W": [[1, 2]], "labels": [0]}})",
       "f: dO is given with labels, whose loss has a gradient, expected none"}};
  for (const auto& [json, expected] : cases) EXPECT_EQ(error_of([&] { explain_input_from_json(json, "f"); }), expected);
}

}  // namespace
}  // namespace qkv::testing
