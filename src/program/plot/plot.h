// Training curves of runs as a page or a picture: loss, score on the dev data, learning rate and speed.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// The horizontal axis.
enum class PlotAxis { steps, time };
constexpr std::array<std::string_view, 2> names_of(PlotAxis) { return {"steps", "time"}; }

inline constexpr size_t kMostPlottedRuns = 16;

// Reads metrics.jsonl of each run directory and returns one HTML page, which needs no network, or one SVG picture. A
// curve has at most 500 points: of a longer one each point is the mean of equally many steps. Memory does not depend
// on the length of training. Throws Error, naming file and line, for a file that cannot be read or is not of this form,
// and for no run or more than kMostPlottedRuns.
std::string plot_html(const std::vector<std::string>& runs, PlotAxis axis = PlotAxis::steps);
std::string plot_svg(const std::vector<std::string>& runs, PlotAxis axis = PlotAxis::steps);

// Returns the figures behind the plot as one JSON object per run: name, steps, seconds, loss, score and points.
std::string plot_json(const std::vector<std::string>& runs, PlotAxis axis = PlotAxis::steps);

}  // namespace qkv
