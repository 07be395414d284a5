#include "program/plot/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "program/plot/assets/plot_chart.css.h"

namespace qkv {
namespace {

constexpr double kTop = 30, kBottom = 212;  // edges of the area of the lines
constexpr int kColumns = 6, kRows = 4;      // steps of the axes, about
constexpr double kNarrowDecades = 3;        // of a logarithmic axis that does not begin and end at a power of ten

struct Extent {
  double least = std::numeric_limits<double>::infinity(), most = -least;

  void take(double value) { least = std::min(least, value), most = std::max(most, value); }
};

// Maps numbers to places. The scale of a logarithmic axis has the logarithms to base 10.
struct Axis {
  AxisScale scale;
  double begin, end;
  bool logarithmic = false;

  double at(double value) const {
    const double place = logarithmic ? std::log10(value) : value;
    return begin + (place - scale.low) / (scale.high - scale.low) * (end - begin);
  }
};

// Returns the logarithms of a range with a margin, or of the whole decades around a wide one.
AxisScale logarithmic_scale(double least, double most) {
  const double low = std::log10(least), high = std::log10(most);
  if (high - low > kNarrowDecades) return {std::floor(low), std::ceil(high), 1};
  const double margin = std::max(0.02 * (high - low), 0.01);
  return {low - margin, high + margin, 1};
}

// Returns an axis for numbers in the extent.
Axis axis_of(const Extent& extent, bool logarithmic, int parts, double begin, double end) {
  const AxisScale scale =
      logarithmic ? logarithmic_scale(extent.least, extent.most) : round_scale(extent.least, extent.most, parts);
  return {scale, begin, end, logarithmic};
}

// Returns the values with labels.
std::vector<double> ticks(const Axis& axis) {
  const AxisScale& scale = axis.scale;
  if (axis.logarithmic) return logarithmic_ticks(std::pow(10, scale.low), std::pow(10, scale.high));
  std::vector<double> values;
  const long count = std::lround((scale.high - scale.low) / scale.step);
  for (long i = 0; i <= count; i++) values.push_back(scale.low + static_cast<double>(i) * scale.step);
  return values;
}

std::string tick_label(const Axis& axis, double value) {
  return axis.logarithmic && (value < 1e-3 || value >= 1e6) ? fmt::format("{:.0e}", value) : short_number(value);
}

std::string path_of(const std::vector<PlotPoint>& points, const Axis& x, const Axis& y) {
  std::string path;
  for (const PlotPoint& p : points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(p.x), y.at(p.y));
  return path;
}

std::string draw_grid(const Axis& x, const Axis& y) {
  std::string lines, labels;
  for (const double value : ticks(y)) {
    lines += fmt::format("M{} {:.1f}H{}", kPlotLeft, y.at(value), kPlotRight);
    labels += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kPlotLeft - 6,
                          y.at(value) + 4, tick_label(y, value));
  }
  for (const double value : ticks(x))
    labels += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x.at(value),
                          kBottom + 16, tick_label(x, value));
  return fmt::format("<path class=\"grid\" d=\"{}\"/>\n{}", lines, labels);
}

std::string draw_line(const ChartLine& line, const Axis& x, const Axis& y) {
  if (line.points.empty()) return "";
  std::string text = fmt::format("<g class=\"{}{}\"><path class=\"line\" d=\"{}\"/>", run_class(line.run),
                                 line.dotted ? " dev" : "", path_of(line.points, x, y));
  const bool single = line.points.size() == 1;
  if (line.dotted || single)
    for (const PlotPoint& p : line.points)
      text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>", x.at(p.x), y.at(p.y));
  return text + "</g>\n";
}

}  // namespace

std::string_view chart_style() { return kPlotChartCss; }

std::string svg_page_begin(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n"
      "<style>\n{2}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
      width, height, chart_style());
}

std::string run_class(size_t run) {
  return fmt::format("run{}{}", run % kRunColours, run < kRunColours ? "" : " again");
}

std::string chart_svg(const Chart& chart, std::string_view position) {
  Extent xs, ys;
  for (const ChartLine& line : chart.lines)
    for (const PlotPoint& p : line.points) xs.take(p.x), ys.take(p.y);
  const bool empty = xs.least > xs.most;
  if (empty) xs = ys = {chart.log_x || chart.log_y ? 1.0 : 0.0, chart.log_x || chart.log_y ? 10.0 : 1.0};
  if (chart.from_zero) ys.take(0);
  const Axis x = axis_of(xs, chart.log_x, kColumns, kPlotLeft, kPlotRight);
  const Axis y = axis_of(ys, chart.log_y, kRows, kBottom, kTop);
  std::string text = fmt::format(
      "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
      "data-curves=\"{}\" data-low=\"{}\" data-high=\"{}\"{}>\n<text class=\"title\" x=\"12\" y=\"17\">{}</text>\n",
      kChartWidth, kChartHeight, markup(chart.title + " by " + chart.axis), chart.curves, x.scale.low, x.scale.high,
      position, markup(chart.title));
  text += draw_grid(x, y);
  for (const ChartLine& line : chart.lines) text += draw_line(line, x, y);
  if (empty) text += fmt::format("<text class=\"tick\" x=\"{}\" y=\"120\">no values yet</text>\n", kPlotLeft + 20);
  return text + fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n</svg>\n",
                            kPlotRight, kChartHeight - 6, markup(chart.axis));
}

std::string markup(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? result += "\uFFFD" : result += c;
    }
  return result;
}

AxisScale round_scale(double least, double most, int parts) {
  const double smallest = std::max({std::abs(least), std::abs(most), 1e-30}) * 1e-6;
  const double rough = std::max(most - least, smallest) / parts;
  const double unit = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * unit;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * unit >= rough * (1 - 1e-9)) step = factor * unit;
  AxisScale scale{std::floor(least / step + 1e-9) * step, std::ceil(most / step - 1e-9) * step, step};
  if (!(scale.high > scale.low)) scale.high = scale.low + step;
  return scale;
}

std::vector<double> logarithmic_ticks(double least, double most) {
  const double low = std::log10(least) - 1e-9, high = std::log10(most) + 1e-9;
  const bool narrow = high - low <= 2.2;  // more labels would touch each other
  const int every = std::max(1, static_cast<int>(std::ceil((high - low) / 6)));
  std::vector<double> values;
  for (int power = static_cast<int>(std::floor(low)); power <= high; power++)
    for (const int factor : {1, 2, 5}) {
      const double place = power + std::log10(factor);
      if (place < low || place > high || (!narrow && (factor > 1 || power % every != 0))) continue;
      values.push_back(factor * std::pow(10, power));
    }
  return values;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 999999.5) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 9999.5) return fmt::format("{:.3g}k", value / 1e3);
  return size < 1e-12 ? "0" : fmt::format("{:.4g}", value);
}

}  // namespace qkv
