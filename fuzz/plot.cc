// metrics.jsonl of a run that is plotted.
#include "fuzz/reader.h"
#include "program/plot/drawing.h"

void qkv::fuzz::fuzz_plot(std::string_view bytes) {
  const MemoryFile file(bytes);
  attempt([&] {
    const RunCurves curves = read_metrics(file.path(), "run", PlotAxis::steps);
    require(curves.loss.points().size() <= Series::kMost, "a curve is bounded");
    for (const PlotPoint& p : curves.loss.points()) require(p.y - p.y == 0, "a point is finite");
    curves_to_svg({curves}, PlotAxis::steps);
    curves_to_html({curves}, PlotAxis::steps);
  });
}
