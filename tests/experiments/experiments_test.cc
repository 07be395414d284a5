// program/experiments/experiment.h: what each experiment claims, on a fixed seed, from its result; and the forms of a
// result. Experiments that train run with fewer steps than from the command line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "program/experiments/experiment.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::with_threads;

// Two layers of width 16 over 12 tokens round a few hundred times, each time by 1e-16 of the size.
TEST(OrderExperiment, OnlyAttentionWithoutPositionsAndMaskCommutesWithPermutations) {
  const ExperimentResult result = run_experiment("order");
  EXPECT_TRUE(result.verdict.is_shown);
  const ExperimentTable& table = result.table("permutations");
  for (const char* name :
       {"encoder, no positions", "cross-attention, queries", "cross-attention, memory (f(ΠX) = f(X))"})
    EXPECT_LT(table.at(name, "largest"), 1e-14) << name;
  for (const char* name : {"encoder, sinusoidal", "encoder, rotary", "encoder, ALiBi", "decoder, no positions"})
    EXPECT_GT(table.at(name, "least"), 1e-3) << name;
}

TEST(OrderExperiment, SentencesOfTheSameWordsDifferOnlyWhereOrderIsKnown) {
  const ExperimentTable table = run_experiment("order").table("sentences");
  ASSERT_EQ(table.rows.size(), 10u);
  for (const ExperimentRow& row : table.rows) {
    EXPECT_LT(table.at(row.name, "encoder, no positions"), 1e-14) << row.name;
    for (const char* kind : {"encoder, sinusoidal", "encoder, rotary", "encoder, ALiBi"})
      EXPECT_GT(table.at(row.name, kind), 1e-4) << row.name << " " << kind;
  }
}

TEST(SoftmaxExperiment, GoesFromTheMeanToTheArgmax) {
  const ExperimentResult result = run_experiment("softmax");
  const ExperimentTable& table = result.table("temperatures");
  for (size_t r = 1; r + 1 < table.rows.size(); r++) {  // falling temperatures
    EXPECT_LT(table.at(table.rows[r].name, "entropy (bits)"), table.at(table.rows[r - 1].name, "entropy (bits)"));
    EXPECT_LT(table.at(table.rows[r].name, "distance to argmax"),
              table.at(table.rows[r - 1].name, "distance to argmax"));
  }
  EXPECT_NEAR(table.at("100", "entropy (bits)"), 3, 1e-3);  // of 8 scores
  EXPECT_LT(table.at("0.01", "distance to argmax"), 1e-3);
  EXPECT_GE(table.at("1", "θ lse(s/θ) − max"), 0);
  EXPECT_LE(table.at("1", "θ lse(s/θ) − max"), std::log(8));
  EXPECT_TRUE(result.verdict.is_shown);
  for (const char* end : {"100", "0.01"}) EXPECT_LT(table.at(end, "gradient"), 0.1 * table.at("0.3", "gradient"));
}

// Seeds whose first draws have two scores nearly as large as one another, and others.
TEST(SoftmaxExperiment, SaysWhatHoldsForEverySeed) {
  for (const uint64_t seed : {1u, 2u, 3u, 6u, 11u, 19u, 41u}) {
    SCOPED_TRACE(seed);
    const ExperimentResult result = run_experiment("softmax", {.seed = seed});
    const ExperimentTable& table = result.table("temperatures");
    EXPECT_GE(std::log(table.at("1", "largest weight") / table.at("1", "second")), 0.25);  // s₁ − s₂
    EXPECT_GT(table.at("0.01", "largest weight"), 1 - 1e-9);
    EXPECT_NEAR(table.at("100", "largest weight"), 0.125, 0.01);
    double peak = 0, place = 0;
    for (const PlotPoint& p : result.charts[1].curves[1].points)
      if (p.y > peak) peak = p.y, place = p.x;
    for (const char* end : {"100", "0.01"}) EXPECT_LT(table.at(end, "gradient"), 0.1 * peak) << end;
    expect_contains(result.findings[1], fmt::format("largest, {:.2f}, at a temperature of {:.2g},", peak, place));
  }
}

TEST(SoftmaxExperiment, TheArgmaxIsOneHotAndHasNoGradient) {
  const ExperimentTable table = run_experiment("softmax").table("temperatures");
  EXPECT_EQ(table.at("argmax", "largest weight"), 1);
  for (const char* column : {"second", "smallest", "entropy (bits)", "distance to argmax", "θ lse(s/θ) − max"})
    EXPECT_EQ(table.at("argmax", column), 0) << column;
  EXPECT_TRUE(std::isnan(table.at("argmax", "gradient")));
}

// |diag(a) − a aᵀ|² = Σ a_i² (1 − a_i)² + Σ_{i ≠ j} a_i² a_j², with the weights of the chart at θ = 1.
TEST(SoftmaxExperiment, TheGradientIsTheNormOfTheJacobian) {
  const ExperimentResult result = run_experiment("softmax");
  std::vector<double> a;
  for (const ExperimentCurve& curve : result.charts[0].curves)
    for (const PlotPoint& p : curve.points)
      if (p.x == 1) a.push_back(p.y);
  ASSERT_EQ(a.size(), 8u);
  double squares = 0;
  for (size_t i = 0; i < a.size(); i++)
    for (size_t j = 0; j < a.size(); j++) squares += std::pow(a[i] * ((i == j ? 1 : 0) - a[j]), 2);
  EXPECT_NEAR(result.table("temperatures").at("1", "gradient"), std::sqrt(squares), 1e-12);
}

TEST(HeadsExperiment, SeveralHeadsFindSeveralPatternsAndOneDoesNot) {
  const ExperimentResult result = run_experiment("heads", {.effort = 0.6});
  EXPECT_TRUE(result.verdict.is_shown);
  const ExperimentTable& table = result.table("heads");
  EXPECT_EQ(table.at("1", "parameters"), table.at("8", "parameters"));
  EXPECT_LT(table.at("8", "largest"), 0.5 * table.at("1", "least"));  // on every seed
  for (const char* pattern : {"previous token", "two before", "same name", "first token"})
    EXPECT_GT(table.at("8", pattern), 0.8) << pattern;
}

TEST(DistanceExperiment, TheGradientOfAttentionFallsSlowlyAndThatOfARecurrentNetworkExponentially) {
  const ExperimentTable table = run_experiment("distance", {.effort = 0.01}).table("gradients");
  EXPECT_GT(table.at("512", "gradient, attention"), 1e-3 * table.at("8", "gradient, attention"));
  EXPECT_LT(table.at("512", "gradient, recurrent"), 1e-20 * table.at("8", "gradient, recurrent"));
}

TEST(LengthsExperiment, RotaryPositionsDoNotReachBeyondTheirTrainingAndALiBiDoes) {
  const ExperimentResult result = run_experiment("lengths", {.effort = 0.4});
  EXPECT_TRUE(result.verdict.is_shown);
  const ExperimentTable& table = result.table("positions");
  const auto growth = [&](const char* kind) { return table.at(kind, "97–128") - table.at(kind, "9–32"); };
  EXPECT_LT(growth("ALiBi"), 0.05);
  EXPECT_GT(growth("rotary"), 0.1);
  EXPECT_LT(growth("rotary, YaRN"), 0.5 * growth("rotary"));
  EXPECT_TRUE(std::isnan(table.at("learned", "33–64")));
  EXPECT_FALSE(std::isnan(table.at("learned", "9–32")));
}

TEST(DepthExperiment, WithoutResidualConnectionsDeepModelsDoNotLearn) {
  const ExperimentResult result = run_experiment("depth", {.effort = 0.5});
  EXPECT_TRUE(result.verdict.is_shown);
  const ExperimentTable& table = result.table("depths");
  EXPECT_LT(table.at("16", "loss, residual"), table.at("16", "loss, without") - 0.1);
  EXPECT_LT(table.at("16", "variety, without"), 0.2 * table.at("16", "variety, residual"));
}

TEST(NormExperiment, ANormAllowsLargerLearningRates) {
  const ExperimentResult result = run_experiment("norm", {.effort = 0.6});
  EXPECT_TRUE(result.verdict.is_shown);
  const ExperimentTable& table = result.table("summary");
  EXPECT_GE(table.at("pre", "largest rate"), 0.003);
  EXPECT_TRUE(std::isnan(table.at("none", "largest rate")));
  for (const char* without : {"none", "final only"})
    EXPECT_LT(table.at("pre", "best loss"), table.at(without, "best loss") - 0.3) << without;
}

TEST(GradientsExperiment, PreNormKeepsTheGradientAndWithoutNormsOrResidualsItExplodesOrVanishes) {
  const ExperimentResult result = run_experiment("gradients");
  EXPECT_TRUE(result.verdict.is_shown);
  const ExperimentTable &layers = result.table("layers"), &depths = result.table("depths");
  EXPECT_GT(layers.at("first / last", "pre-norm"), 0.3);
  EXPECT_LT(layers.at("first / last", "pre-norm"), 3);
  EXPECT_LT(depths.at("16, first", "neither"), 0.01 * depths.at("2, first", "neither"));
  EXPECT_GT(depths.at("16, first", "no norm"), 1000 * depths.at("2, first", "no norm"));
  EXPECT_LT(depths.at("16, last", "pre-norm"), 0.6 * depths.at("2, last", "pre-norm"));
  EXPECT_GT(depths.at("16, last", "post-norm"), 0.8 * depths.at("2, last", "post-norm"));
}

TEST(BaselinesExperiment, NGramsWinWithLittleTextAndTheTransformerWithMuch) {
  const ExperimentResult result = run_experiment("baselines", {.effort = 0.6});
  EXPECT_TRUE(result.verdict.is_shown);
  const ExperimentTable& table = result.table("perplexity");
  const auto best_ngram = [&](const std::string& column) {
    double best = 1e300;
    for (const char* name : {"1-gram", "2-gram", "3-gram", "4-gram", "5-gram"})
      best = std::min(best, table.at(name, column));
    return best;
  };
  const std::string least = table.columns.front(), most = table.columns.back();
  EXPECT_LT(best_ngram(least), table.at("Transformer", least));
  EXPECT_LT(table.at("Transformer", most), best_ngram(most));
  for (const std::string& column : table.columns)
    for (const ExperimentRow& row : table.rows)
      EXPECT_GE(table.at(row.name, column), table.at("entropy (estimate)", column)) << row.name;
}

std::string text_of_lines(size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; i++)
    text += "the " + std::to_string(i % 7) + " words of line " + std::to_string(i);
  return text;
}

// 9,360 bytes are enough for the smallest amount of training text, and below 16,640 there is no other.
TEST(BaselinesExperiment, HasOneSentenceForOneAmountOfText) {
  const testing::TempFile file("text.txt", text_of_lines(9360));
  const ExperimentResult result = run_experiment("baselines", {.effort = 0.01, .data = file.path()});
  EXPECT_EQ(result.table("perplexity").columns, (std::vector<std::string>{"1040"}));
  ASSERT_EQ(result.findings.size(), 1u);
  expect_contains(result.findings[0], "With 1040 symbols the best n-gram model (");
}

TEST(BaselinesExperiment, ReadsTheBytesOfAFile) {
  const testing::TempFile file("text.txt", text_of_lines(20000));
  const ExperimentTable table = run_experiment("baselines", {.effort = 0.01, .data = file.path()}).table("perplexity");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"1040", "8320"}));
  EXPECT_LT(table.at("5-gram", "8320"), table.at("1-gram", "8320"));
  const testing::TempFile little("little.txt", "few bytes");
  expect_contains(error_of([&] { run_experiment("baselines", {.data = little.path()}); }),
                  "little.txt: has 9 bytes, expected at least 9360");
}

TEST(Experiments, HaveTheSameBytesForAnyNumberOfThreads) {
  for (const Experiment& experiment : experiments()) {
    const auto json = [&](int threads) {
      return with_threads(threads, [&] {
        return experiment_to_json(run_experiment(experiment.name, {.seed = 3, .effort = 0.01}), experiment.name, 3);
      });
    };
    EXPECT_EQ(json(1), json(3)) << experiment.name;
  }
}

// A sentence has the numbers of its run, whatever they are.
TEST(Experiments, SentencesHaveTheNumbersOfTheirTables) {
  for (const uint64_t seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    const auto run = [&](const char* name) { return run_experiment(name, {.seed = seed, .effort = 0.01}); };
    const ExperimentResult gradients = run("gradients"), depth = run("depth"), norm = run("norm");
    const ExperimentTable &by_depth = gradients.table("depths"), &losses = depth.table("depths");
    const auto first = [&](const char* kind) { return by_depth.at("16, first", kind); };
    EXPECT_EQ(gradients.findings[1],
              fmt::format("That of the first of 16 layers is {:.2f} with pre-norm, {:.1e} without norms, {:.1e} with "
                          "norms but without residual connections, and {:.1e} without both.",
                          first("pre-norm"), first("no norm"), first("no residual"), first("neither")));
    expect_contains(depth.findings[0],
                    fmt::format("{:.3f} with one layer and {:.3f} with 16, without them {:.3f} and {:.3f}.",
                                losses.at("1", "loss, residual"), losses.at("16", "loss, residual"),
                                losses.at("1", "loss, without"), losses.at("16", "loss, without")));
    expect_contains(norm.findings[1], fmt::format("{:.2f} before training",
                                                  norm.table("summary").at("final only", "RMS before training")));
  }
}

// After one or a few steps, models are as good as guessing.
TEST(Experiments, AVerdictThatTheNumbersDoNotShowSaysSo) {
  for (const char* name : {"heads", "norm", "depth", "lengths", "distance", "baselines"}) {
    const ExperimentResult result = run_experiment(name, {.effort = 0.01});
    EXPECT_FALSE(result.verdict.is_shown) << name;
    expect_contains(experiment_to_text(result), "\nVerdict: not shown by this run. ");
  }
}

TEST(Experiments, ReportEachModelThatHasBeenTrained) {
  const auto reports_of = [](const char* name) {
    std::vector<std::pair<int64_t, int64_t>> reports;
    ExperimentOptions options = {.effort = 0.01};
    options.on_progress = [&](int64_t trained, int64_t all) { reports.emplace_back(trained, all); };
    run_experiment(name, options);
    return reports;
  };
  EXPECT_TRUE(reports_of("softmax").empty());
  for (const auto& [name, all] : {std::pair{"lengths", 6}, {"depth", 10}}) {
    const auto reports = reports_of(name);
    ASSERT_EQ(std::ssize(reports), all + 1) << name;
    for (int64_t i = 0; i <= all; i++)
      EXPECT_EQ(reports[static_cast<size_t>(i)], (std::pair<int64_t, int64_t>(i, all)));
  }
}

TEST(Experiments, HaveTablesChartsAndSentences) {
  for (const Experiment& experiment : experiments()) {
    SCOPED_TRACE(experiment.name);
    const ExperimentResult result = run_experiment(experiment.name, {.effort = 0.01});
    EXPECT_FALSE(result.tables.empty() || result.charts.empty());
    EXPECT_TRUE(result.findings.size() >= 1 && result.findings.size() <= 2);
    EXPECT_TRUE(experiment_to_text(result).starts_with("Task: "));
    expect_contains(result.task, "Compared: ");
    EXPECT_FALSE(result.verdict.claim.empty());
    for (const ExperimentTable& table : result.tables)
      for (const ExperimentRow& row : table.rows) EXPECT_EQ(row.values.size(), table.columns.size()) << row.name;
    const std::string svg = experiment_to_svg(result, experiment.summary);
    for (const ExperimentChart& chart : result.charts)
      for (const ExperimentCurve& curve : chart.curves) expect_contains(svg, ">" + curve.name + "<");
  }
}

ExperimentResult small_result() {
  ExperimentResult result;
  result.findings = {"One & two."};
  result.tables = {{"t", "A table", "row", {"first", "second"}}};
  result.tables[0].add("größer", {1, 0.5});
  result.tables[0].add("b", {std::nan(""), 1e-9});
  result.tables[0].legend = "b: a letter.";
  result.task = "Count.", result.verdict = {"All is well.", true};
  result.charts = {{"A <chart>", "x", true, true, {{"curve", {{1, 1e-12}, {10, 1}, {100, -1}, {1000, std::nan("")}}}}}};
  return result;
}

TEST(ExperimentForms, TextHasAlignedColumns) {
  EXPECT_EQ(experiment_to_text(small_result()),
            "Task: Count.\n\n"
            "A table\n"
            "  row     first   second\n"
            "  größer      1    0.500\n"
            "  b           –  1.0e-09\n"
            "  b: a letter.\n\n"
            "One & two.\n\n"
            "Verdict: shown. All is well.\n");
}

TEST(ExperimentForms, JsonHasAllNumbers) {
  const auto json = nlohmann::json::parse(experiment_to_json(small_result(), "name", 7));
  EXPECT_EQ(json["experiment"], "name");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["task"], "Count.");
  EXPECT_EQ(json["verdict"]["claim"], "All is well.");
  EXPECT_TRUE(json["verdict"]["shown"].get<bool>());
  EXPECT_EQ(json["tables"][0]["legend"], "b: a letter.");
  EXPECT_EQ(json["tables"][0]["rows"][0]["values"], (std::vector<double>{1, 0.5}));
  EXPECT_TRUE(json["tables"][0]["rows"][1]["values"][0].is_null());
  EXPECT_EQ(json["charts"][0]["curves"][0]["points"][1], (std::vector<double>{10, 1}));
}

// The curve goes from the lower left to the upper right; the two points without a logarithm are left out.
TEST(ExperimentForms, PictureHasLogarithmicAxes) {
  const std::string svg = experiment_to_svg(small_result(), "A <title>");
  expect_contains(svg, "A &lt;title&gt;");
  expect_contains(svg, "A &lt;chart&gt;");
  expect_contains(svg, ">1e-12<");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  const size_t path = svg.find("class=\"line\" d=\"M");
  EXPECT_EQ(std::count(svg.begin() + static_cast<std::ptrdiff_t>(path),
                       svg.begin() + static_cast<std::ptrdiff_t>(svg.find('/', path)), 'L'),
            1);
}

TEST(Experiments, RefuseWhatTheyDoNotKnow) {
  expect_contains(error_of([] { run_experiment("order2"); }), "experiment: must be one of softmax, heads");
  expect_contains(error_of([] { run_experiment("order", {.effort = 0}); }),
                  "experiment: effort must be above 0 and at most 1 (is 0)");
  expect_contains(error_of([] { run_experiment("order", {.data = "a.txt"}); }),
                  "experiment order: reads no data (found a.txt)");
  expect_contains(error_of([] { small_result().table("t").at("b", "third"); }), "table t: has no b, third");
  expect_contains(error_of([] { small_result().table("u"); }), "experiment: has no table u");
}

}  // namespace
}  // namespace qkv
