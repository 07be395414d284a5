// The result of an experiment for a terminal, as JSON and as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "program/experiments/experiment.h"
#include "program/plot/chart.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kLineWidth = 100;  // of sentences

std::string cell_text(double value) {
  if (std::isnan(value)) return "–";
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e6 || size < 1e-3) return fmt::format("{:.1e}", value);
  if (value == std::round(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : 3);
}

std::string table_lines(const ExperimentTable& table) {
  size_t margin = width(table.row_name);
  for (const ExperimentRow& row : table.rows) margin = std::max(margin, width(row.name));
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); c++) {
    widths.push_back(width(table.columns[c]));
    for (const ExperimentRow& row : table.rows) widths[c] = std::max(widths[c], width(cell_text(row.values[c])));
  }
  std::string text = wrapped(table.title, kLineWidth) + "  " + aligned(table.row_name, margin, TextSide::left);
  for (size_t c = 0; c < widths.size(); c++) text += "  " + aligned(table.columns[c], widths[c], TextSide::right);
  for (const ExperimentRow& row : table.rows) {
    text += "\n  " + aligned(row.name, margin, TextSide::left);
    for (size_t c = 0; c < widths.size(); c++)
      text += "  " + aligned(cell_text(row.values[c]), widths[c], TextSide::right);
  }
  text += "\n";
  if (!table.legend.empty()) text += wrapped(table.legend, kLineWidth, "  ");
  return text + "\n";
}

Chart drawing_of(const ExperimentChart& chart) {
  Chart drawing;
  drawing.title = chart.title, drawing.axis = chart.axis;
  drawing.log_x = chart.log_x, drawing.log_y = chart.log_y;
  const auto is_drawn = [&](const PlotPoint& p) {
    return std::isfinite(p.x) && std::isfinite(p.y) && (p.x > 0 || !chart.log_x) && (p.y > 0 || !chart.log_y);
  };
  for (size_t i = 0; i < chart.curves.size(); i++) {
    drawing.lines.push_back({i, false, {}});
    std::ranges::copy_if(chart.curves[i].points, std::back_inserter(drawing.lines.back().points), is_drawn);
  }
  return drawing;
}

constexpr double kLegendRow = 18, kLegendColumn = 196;
constexpr size_t kLongestName = 23;  // in characters, of a column of the legend

// Returns the number of columns in which the names of the curves fit.
size_t legend_columns(const ExperimentChart& chart) {
  const auto is_long = [](const ExperimentCurve& curve) { return width(curve.name) > kLongestName; };
  return std::ranges::any_of(chart.curves, is_long) ? 1 : 2;
}

size_t legend_rows(const ExperimentChart& chart) {
  return (chart.curves.size() + legend_columns(chart) - 1) / legend_columns(chart);
}

// Returns the names of the curves below y.
std::string legend_svg(const ExperimentChart& chart, double x, double y) {
  std::string text;
  const size_t columns = legend_columns(chart);
  for (size_t i = 0; i < chart.curves.size(); i++) {
    const double left = x + 24 + static_cast<double>(i % columns) * kLegendColumn,
                 base = y + static_cast<double>(i / columns) * kLegendRow + 12;
    text += fmt::format(
        "<g class=\"{}\"><path class=\"line\" d=\"M{} {}h22\"/></g><text class=\"name\" x=\"{}\" y=\"{}\">{}</text>\n",
        run_class(i), left, base - 4, left + 30, base, markup(chart.curves[i].name));
  }
  return text;
}

}  // namespace

std::string experiment_to_text(const ExperimentResult& result) {
  std::string text;
  if (!result.task.empty()) text += wrapped("Task: " + result.task, kLineWidth) + "\n";
  for (const ExperimentTable& table : result.tables) text += table_lines(table);
  for (const std::string& sentence : result.findings) text += wrapped(sentence, kLineWidth);
  const auto& [claim, is_shown] = result.verdict;
  if (!claim.empty())
    text += "\n" +
            wrapped(fmt::format("Verdict: {} {}", is_shown ? "shown." : "not shown by this run.", claim), kLineWidth);
  return text;
}

std::string experiment_to_json(const ExperimentResult& result, std::string_view name, uint64_t seed) {
  using nlohmann::ordered_json;
  ordered_json json = {{"experiment", name},
                       {"seed", seed},
                       {"task", result.task},
                       {"findings", result.findings},
                       {"verdict", {{"claim", result.verdict.claim}, {"shown", result.verdict.is_shown}}}};
  for (const ExperimentTable& table : result.tables) {
    ordered_json rows = ordered_json::array();
    for (const ExperimentRow& row : table.rows) rows.push_back({{"name", row.name}, {"values", row.values}});
    json["tables"].push_back({{"id", table.id}, {"title", table.title}, {"columns", table.columns}, {"rows", rows}});
    if (!table.legend.empty()) json["tables"].back()["legend"] = table.legend;
  }
  for (const ExperimentChart& chart : result.charts) {
    ordered_json curves = ordered_json::array();
    for (const ExperimentCurve& curve : chart.curves) {
      ordered_json points = ordered_json::array();
      for (const PlotPoint& p : curve.points) points.push_back({p.x, p.y});
      curves.push_back({{"name", curve.name}, {"points", points}});
    }
    json["charts"].push_back({{"title", chart.title}, {"x", chart.axis}, {"curves", curves}});
  }
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string experiment_to_svg(const ExperimentResult& result, std::string_view title) {
  constexpr double kGap = 10, kTitle = 36;
  const size_t charts = result.charts.size(), columns = std::min<size_t>(charts, 2);
  size_t longest = 0;
  for (const ExperimentChart& chart : result.charts) longest = std::max(longest, legend_rows(chart));
  const double cell = kChartHeight + static_cast<double>(longest) * kLegendRow + 2 * kGap;
  const double of_charts = static_cast<double>(columns) * (kChartWidth + kGap) + kGap;
  const double of_title = 7 * static_cast<double>(width(std::string(title))) + 40;  // about
  const double height = kTitle + static_cast<double>((charts + 1) / 2) * cell;
  std::string text = svg_page_begin(std::max(of_charts, of_title), height);
  text += fmt::format("<text class=\"name\" x=\"{}\" y=\"24\">{}</text>\n", kGap + 12, markup(title));
  for (size_t i = 0; i < charts; i++) {
    const double x = kGap + static_cast<double>(i % 2) * (kChartWidth + kGap),
                 y = kTitle + static_cast<double>(i / 2) * cell;
    text += chart_svg(drawing_of(result.charts[i]),
                      fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", x, y, kChartWidth, kChartHeight));
    text += legend_svg(result.charts[i], x, y + kChartHeight + 4);
  }
  return text + "</svg>\n";
}

}  // namespace qkv
