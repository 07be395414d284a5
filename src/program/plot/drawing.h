// Training curves as text of several forms.
#pragma once

#include <string>
#include <vector>

#include "program/plot/run_curves.h"

namespace qkv {

std::string curves_to_html(const std::vector<RunCurves>& runs, PlotAxis axis);
std::string curves_to_svg(const std::vector<RunCurves>& runs, PlotAxis axis);
std::string curves_to_json(const std::vector<RunCurves>& runs, PlotAxis axis);

}  // namespace qkv
