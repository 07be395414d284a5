// A chart as SVG: lines of several runs over one horizontal axis.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/plot/series.h"

namespace qkv {

struct ChartLine {
  size_t run = 0;       // chooses the colour
  bool dotted = false;  // with a dot at each point, for evaluations
  std::vector<PlotPoint> points;
};

struct Chart {
  std::string title, axis;  // axis: name of the horizontal one, "steps"
  std::string curves;       // names of what the lines show, for the script of the page: "loss dev_loss"
  bool from_zero = false;   // the vertical axis begins at 0
  std::vector<ChartLine> lines;
  bool log_x = false, log_y = false;  // logarithmic axes, whose numbers must be positive
};

constexpr double kChartWidth = 420, kChartHeight = 250;  // of the drawing, in its own units
constexpr double kPlotLeft = 54, kPlotRight = 398;       // edges of the area of the lines
constexpr size_t kRunColours = 8;                        // further runs have the same ones, with dashes

// Returns the style sheet of charts, with colours for light and dark pages.
std::string_view chart_style();

// Returns the classes of the style sheet for a run: "run2", or "run2 again".
std::string run_class(size_t run);

// Returns an <svg> element of kChartWidth × kChartHeight units. position: its further attributes.
std::string chart_svg(const Chart& chart, std::string_view position = "");

// Returns the beginning of a picture of charts, up to the rectangle behind them; "</svg>" ends it.
std::string svg_page_begin(double width, double height);

// Returns the text with the characters escaped that have a meaning in HTML and XML; control characters become U+FFFD.
std::string markup(std::string_view text);

// The values of an axis that have a label: low, low + step, …, high.
struct AxisScale {
  double low = 0, high = 1, step = 1;
};

// Returns a scale of about `parts` round steps that contains both values.
AxisScale round_scale(double least, double most, int parts);

// Returns the labelled values of a logarithmic axis between two positive numbers: powers of ten, and twice and five
// times these if the range is narrow.
std::vector<double> logarithmic_ticks(double least, double most);

// Returns a number as on an axis: "0.25", "12k", "3M".
std::string short_number(double value);

}  // namespace qkv
