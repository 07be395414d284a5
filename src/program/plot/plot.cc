// The page, the picture and the figures of training curves.
#include "program/plot/plot.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/placeholders.h"
#include "program/plot/assets/plot.css.h"
#include "program/plot/assets/plot.html.h"
#include "program/plot/assets/plot.js.h"
#include "program/plot/chart.h"
#include "program/plot/drawing.h"
#include "program/plot/run_curves.h"

namespace qkv {
namespace {

using nlohmann::ordered_json;
using Runs = std::vector<RunCurves>;

Runs read(const std::vector<std::string>& names, PlotAxis axis) {
  if (names.empty() || names.size() > kMostPlottedRuns)
    fail("plot: the number of runs must be between 1 and {} (is {})", kMostPlottedRuns, names.size());
  Runs runs;
  for (const std::string& name : names) runs.push_back(read_run_curves(name, axis));
  return runs;
}

// A member of RunCurves with its name in JSON and in words.
struct Curve {
  const char *name, *words;
  Series RunCurves::*series;
};
constexpr Curve kLoss = {"loss", "loss", &RunCurves::loss};
constexpr Curve kDevLoss = {"dev_loss", "dev loss", &RunCurves::dev_loss};
constexpr Curve kDevScore = {"dev_score", "dev score", &RunCurves::dev_score};
constexpr Curve kRate = {"learning_rate", "learning rate", &RunCurves::learning_rate};
constexpr Curve kSpeed = {"tokens_per_second", "tokens per second", &RunCurves::speed};
constexpr Curve kCurves[] = {kLoss, kDevLoss, kDevScore, kRate, kSpeed};

bool is_dev(const Curve& curve) { return std::string_view(curve.name).starts_with("dev"); }

Chart chart(const Runs& runs, PlotAxis axis, const std::string& title, std::initializer_list<Curve> curves) {
  Chart chart;
  chart.title = title;
  chart.axis = axis == PlotAxis::steps ? "steps" : "minutes";
  for (const Curve& curve : curves) {
    chart.curves += (chart.curves.empty() ? "" : " ") + std::string(curve.name);
    for (size_t run = 0; run < runs.size(); run++)
      chart.lines.push_back({run, is_dev(curve), (runs[run].*curve.series).points()});
  }
  return chart;
}

// Returns the names of the scores of all runs: "bleu", or "bleu, NDCG@10".
std::string score_names(const Runs& runs) {
  std::vector<std::string> names;
  for (const RunCurves& run : runs)
    if (!run.score_name.empty() && std::ranges::find(names, run.score_name) == names.end())
      names.push_back(run.score_name);
  return names.empty() ? "score" : fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Chart> charts(const Runs& runs, PlotAxis axis) {
  const bool has_dev_loss = std::ranges::any_of(runs, [](const RunCurves& run) { return !run.dev_loss.empty(); });
  std::vector<Chart> all = {chart(runs, axis, has_dev_loss ? "Loss (dots: on dev data)" : "Loss", {kLoss, kDevLoss}),
                            chart(runs, axis, "Dev score: " + score_names(runs), {kDevScore}),
                            chart(runs, axis, "Learning rate", {kRate}),
                            chart(runs, axis, "Targets per second", {kSpeed})};
  all[2].from_zero = all[3].from_zero = true;
  return all;
}

ordered_json points_json(const Series& series) {
  ordered_json points = ordered_json::array();
  for (const PlotPoint& p : series.points()) points.push_back({p.x, p.y});
  return points;
}

ordered_json run_json(const RunCurves& run) {
  ordered_json json = {
      {"name", run.name},        {"steps", run.steps},         {"seconds", run.seconds},      {"loss", run.last_loss},
      {"score", run.score_name}, {"best_step", run.best_step}, {"best_score", run.best_score}};
  for (const Curve& curve : kCurves) json["curves"][curve.name] = points_json(run.*curve.series);
  return json;
}

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::min(seconds, 1e12));
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string best_of(const RunCurves& run) {
  if (run.best_step == 0) return "none yet";
  return markup(fmt::format("{} {:.4g} at step {}", run.score_name, run.best_score, run.best_step));
}

// Returns the rows of the table, with a button that hides and shows the run.
std::string rows(const Runs& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); i++)
    text += fmt::format(
        "<tr><th scope=\"row\"><button type=\"button\" aria-pressed=\"true\" data-run=\"{}\"><svg viewBox=\"0 0 24 "
        "10\" aria-hidden=\"true\"><g class=\"{}\"><path class=\"line\" d=\"M1 5H23\"/></g></svg>{}</button></th>"
        "<td>{}</td><td>{}</td><td>{:.4g}</td><td>{}</td></tr>\n",
        i, run_class(i), markup(runs[i].name), runs[i].steps, duration(runs[i].seconds), runs[i].last_loss,
        best_of(runs[i]));
  return text;
}

std::string figures(const Runs& runs, PlotAxis axis) {
  std::string text;
  for (const Chart& chart : charts(runs, axis))
    text += "<figure>\n" + chart_svg(chart) + "<p class=\"values\"></p>\n</figure>\n";
  return text;
}

}  // namespace

std::string curves_to_json(const Runs& runs, PlotAxis axis) {
  ordered_json json = {{"axis", axis == PlotAxis::steps ? "steps" : "minutes"}};
  for (const Curve& curve : kCurves) json["words"][curve.name] = curve.words;
  for (const RunCurves& run : runs) json["runs"].push_back(run_json(run));
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string curves_to_html(const Runs& runs, PlotAxis axis) {
  const std::string style = std::string(chart_style()).append(kPlotCss);
  return fill_in(kPlotHtml, {{"{{style}}", style},
                             {"{{rows}}", rows(runs)},
                             {"{{figures}}", figures(runs, axis)},
                             {"{{data}}", inside_script(curves_to_json(runs, axis))},
                             {"{{script}}", kPlotJs}});
}

std::string curves_to_svg(const Runs& runs, PlotAxis axis) {
  constexpr double kGap = 10, kRow = 20;
  const double top = kGap + kRow * static_cast<double>(runs.size());
  const double width = 2 * kChartWidth + kGap, height = top + 2 * kChartHeight;
  std::string text = svg_page_begin(width, height);
  for (size_t i = 0; i < runs.size(); i++)
    text += fmt::format(
        "<g class=\"{}\"><path class=\"line\" d=\"M12 {}h24\"/></g><text class=\"name\" x=\"44\" y=\"{}\">{}: "
        "{}</text>\n",
        run_class(i), kGap + kRow * static_cast<double>(i) + 6, kGap + kRow * static_cast<double>(i) + 10,
        markup(runs[i].name), best_of(runs[i]));
  const std::vector<Chart> all = charts(runs, axis);
  for (size_t i = 0; i < all.size(); i++) {
    const double x = i % 2 == 0 ? 0 : kChartWidth + kGap, y = top + (i < 2 ? 0 : kChartHeight);
    text += chart_svg(all[i],
                      fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", x, y, kChartWidth, kChartHeight));
  }
  return text + "</svg>\n";
}

using Names = std::vector<std::string>;
std::string plot_html(const Names& runs, PlotAxis axis) { return curves_to_html(read(runs, axis), axis); }
std::string plot_svg(const Names& runs, PlotAxis axis) { return curves_to_svg(read(runs, axis), axis); }
std::string plot_json(const Names& runs, PlotAxis axis) { return curves_to_json(read(runs, axis), axis); }

}  // namespace qkv
