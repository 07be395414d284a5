#include "program/plot/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "program/plot/chart.h"
#include "program/plot/drawing.h"
#include "program/plot/run_curves.h"
#include "program/plot/series.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Series, KeepsAllPointsOfAShortCurve) {
  Series series;
  for (int i = 0; i < 5; i++) series.add(i, 10 * i);
  EXPECT_EQ(series.points(), (std::vector<PlotPoint>{{0, 0}, {1, 10}, {2, 20}, {3, 30}, {4, 40}}));
}

TEST(Series, AveragesNeighboursOfALongCurve) {
  Series series;
  for (int i = 0; i < 4003; i++) series.add(i, i % 2);
  const std::vector<PlotPoint> points = series.points();
  EXPECT_LE(points.size(), Series::kMost);
  EXPECT_GE(points.size(), Series::kMost / 2);
  EXPECT_EQ(points[0], (PlotPoint{7.5, 0.5}));  // the mean of the first 16
  for (size_t i = 1; i < points.size(); i++) EXPECT_GT(points[i].x, points[i - 1].x);
}

TEST(Series, LeavesOutNumbersThatCannotBeDrawn) {
  Series series;
  for (const double y : {std::nan(""), kInfinity, -kInfinity, 1e300}) series.add(1, y);
  series.add(std::nan(""), 1);
  EXPECT_TRUE(series.empty());
}

TEST(AxisScale, ContainsBothValuesInRoundSteps) {
  for (const auto& [least, most] : {std::pair{0.0, 1.0}, {2.31, 9.87}, {0.0, 123456.0}, {1e-5, 3e-5}, {-4.2, -1.1}}) {
    const AxisScale scale = round_scale(least, most, 4);
    EXPECT_LE(scale.low, least + 1e-9 * std::abs(most));
    EXPECT_GE(scale.high, most - 1e-9 * std::abs(most));
    EXPECT_GE((scale.high - scale.low) / scale.step, 2);
    EXPECT_LE((scale.high - scale.low) / scale.step, 6);
  }
  EXPECT_EQ(round_scale(0, 10, 4).step, 5);
}

TEST(LogarithmicTicks, ArePowersOfTenAndWhatIsBetweenThemInANarrowRange) {
  EXPECT_EQ(logarithmic_ticks(1e-3, 10), (std::vector<double>{1e-3, 1e-2, 1e-1, 1, 10}));
  const std::vector<double> narrow = logarithmic_ticks(3, 120);
  ASSERT_EQ(narrow.size(), 5u);
  for (size_t i = 0; i < narrow.size(); i++) EXPECT_NEAR(narrow[i], (std::vector<double>{5, 10, 20, 50, 100})[i], 1e-9);
  EXPECT_LE(logarithmic_ticks(1e-100, 1e10).size(), 7u);
}

TEST(AxisScale, HasAWidthForEqualAndExtremeValues) {
  for (const double value : {0.0, 5.0, -1e30, 1e30, 1e-300}) {
    const AxisScale scale = round_scale(value, value, 4);
    EXPECT_GT(scale.high, scale.low) << value;
  }
}

TEST(ShortNumber, FitsNextToAnAxis) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(9000), "9000");
  EXPECT_EQ(short_number(12000), "12k");
  EXPECT_EQ(short_number(3e6), "3M");
}

class Plot : public ::testing::Test {
 protected:
  std::string run(const std::string& name, const std::string& metrics) const {
    const std::string path = directory_ / name;
    std::filesystem::create_directories(path);
    testing::spill(path + "/metrics.jsonl", metrics);
    return path;
  }
  RunCurves read(const std::string& metrics, PlotAxis axis = PlotAxis::steps) const {
    return read_run_curves(run("run", metrics), axis);
  }

  testing::TempDir directory_;
};

constexpr const char* kMetrics =
    R"({"step":0,"baselines":{"popularity":{"NDCG@10":0.1}}}
{"step":1,"epoch":1,"loss":4.0,"learning_rate":0.1,"tokens_per_second":100,"seconds":60}
{"step":2,"epoch":1,"loss":3.0,"learning_rate":0.2,"tokens_per_second":200,"seconds":120}
{"step":2,"dev":{"last":{"loss":9.0,"bleu":1.0},"ema":{"loss":3.5,"bleu":7.5}},"best":"ema","improved":true,"seconds":130}
)";

TEST_F(Plot, ReadsStepsAndTheBestCandidateOfAnEvaluation) {
  const RunCurves curves = read(kMetrics);
  EXPECT_EQ(curves.loss.points(), (std::vector<PlotPoint>{{1, 4}, {2, 3}}));
  EXPECT_EQ(curves.learning_rate.points(), (std::vector<PlotPoint>{{1, 0.1}, {2, 0.2}}));
  EXPECT_EQ(curves.speed.points(), (std::vector<PlotPoint>{{1, 100}, {2, 200}}));
  EXPECT_EQ(curves.dev_loss.points(), (std::vector<PlotPoint>{{2, 3.5}}));
  EXPECT_EQ(curves.dev_score.points(), (std::vector<PlotPoint>{{2, 7.5}}));
  EXPECT_EQ(curves.score_name, "bleu");
  EXPECT_EQ(curves.best_step, 2);
  EXPECT_EQ(curves.best_score, 7.5);
  EXPECT_EQ(curves.seconds, 130);
}

TEST_F(Plot, TheAxisOfTimeIsInMinutes) {
  EXPECT_EQ(read(kMetrics, PlotAxis::time).loss.points(), (std::vector<PlotPoint>{{1, 4}, {2, 3}}));
}

TEST_F(Plot, NumbersThatAreNotFiniteAreGaps) {
  EXPECT_EQ(read("{\"step\":1,\"loss\":null}\n{\"step\":2,\"loss\":3}\n").loss.points(),
            (std::vector<PlotPoint>{{2, 3}}));
}

TEST_F(Plot, ALastLineThatACrashTruncatedIsSkipped) {
  EXPECT_EQ(read(std::string(kMetrics) + "{\"step\":3,\"lo").loss.points().size(), 2u);
}

TEST_F(Plot, NamesTheLineThatIsWrong) {
  const auto error = [&](const std::string& line) {
    return testing::error_of([&] { read("{\"step\":1,\"loss\":1}\n" + line + "\n{\"step\":3,\"loss\":1}\n"); });
  };
  EXPECT_NE(error("{").find("metrics.jsonl:2"), std::string::npos);
  EXPECT_NE(error("[]").find("metrics.jsonl:2: must be a JSON object"), std::string::npos);
  EXPECT_NE(error("{\"step\":-1}").find("metrics.jsonl:2: must have a \"step\""), std::string::npos);
}

TEST_F(Plot, NamesARunWithoutSteps) {
  EXPECT_NE(testing::error_of([&] { read("{\"step\":0,\"baselines\":{}}\n"); }).find("no training step"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] { plot_html({directory_ / "absent"}); }).find("is not a run directory"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] { plot_html({directory_.path()}); }).find("has no metrics.jsonl"), std::string::npos);
  EXPECT_NE(testing::error_of([&] { plot_html({}); }).find("between 1 and 16 (is 0)"), std::string::npos);
}

TEST_F(Plot, TextOfTheRunCannotBecomeMarkup) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>&\"";
  const std::string metrics = R"({"step":1,"dev":{"a":{"</script><b>":1}},"best":"a","improved":true})";
  RunCurves curves = read(metrics + "\n");
  curves.name = hostile;
  for (const std::string& text :
       {curves_to_html({curves}, PlotAxis::steps), curves_to_svg({curves}, PlotAxis::steps)}) {
    EXPECT_EQ(text.find("<img"), std::string::npos);
    EXPECT_EQ(text.find("<b>"), std::string::npos);
    EXPECT_NE(text.find("&lt;img src=x"), std::string::npos);
  }
}

TEST_F(Plot, ThePageHasAChartForEachFigureAndARowForEachRun) {
  const std::string page = plot_html({run("a", kMetrics), run("b", kMetrics)});
  for (const char* title : {"Loss (dots: on dev data)", "Dev score: bleu", "Learning rate", "Targets per second"})
    EXPECT_NE(page.find(std::string(">") + title + "</text>"), std::string::npos) << title;
  EXPECT_NE(page.find("data-run=\"1\""), std::string::npos);
  EXPECT_EQ(page.find("data-run=\"2\""), std::string::npos);
  EXPECT_NE(page.find("bleu 7.5 at step 2"), std::string::npos);
  EXPECT_EQ(page.find("http"), page.find("http-equiv"));  // no external resource; then only the name of SVG's language
  for (size_t at = page.find("http://"); at != page.npos; at = page.find("http://", at + 1))
    EXPECT_EQ(page.substr(at, 26), "http://www.w3.org/2000/svg");
}

TEST_F(Plot, JsonHasThePoints) {
  const auto json = nlohmann::json::parse(plot_json({run("a", kMetrics)}));
  EXPECT_EQ(json["runs"][0]["curves"]["loss"], (nlohmann::json{{1.0, 4.0}, {2.0, 3.0}}));
  EXPECT_EQ(json["runs"][0]["score"], "bleu");
}

}  // namespace
}  // namespace qkv
