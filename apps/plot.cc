// qkv plot: training curves as a page, a picture or JSON.
#include "program/plot/plot.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "choices.h"
#include "commands.h"

namespace {

struct PlotOptions {
  std::vector<std::string> runs;
  std::string html, svg;
  qkv::PlotAxis axis = qkv::PlotAxis::steps;
  bool json = false;
};

void write_plot(const std::string& path, const std::string& text) {
  write_text_file(path, text);
  print_error("{}\n", path);
}

void plot(const PlotOptions& options) {
  if (options.json) print_out(qkv::plot_json(options.runs, options.axis) + "\n");
  if (!options.svg.empty()) write_plot(options.svg, qkv::plot_svg(options.runs, options.axis));
  const bool other = options.json || !options.svg.empty();
  const std::string page = options.html.empty() && !other ? "plot.html" : options.html;
  if (!page.empty()) write_plot(page, qkv::plot_html(options.runs, options.axis));
}

}  // namespace

void add_plot_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plot", "Plot the training curves of one or more runs");
  const auto options = std::make_shared<PlotOptions>();
  command->add_option("run", options->runs, "Run directories to compare, at most 16")->required();
  command
      ->add_option("--html", options->html, "Write a page to this file [default plot.html, without --svg and --json]")
      ->type_name("FILE");
  command->add_option("--svg", options->svg, "Write an SVG picture to this file")->type_name("FILE");
  command->add_option("--x", options->axis, choice_help("Horizontal axis", options->axis))
      ->transform(choices<qkv::PlotAxis>())
      ->type_name("TEXT");
  command->add_flag("--json", options->json, "Print the points of the curves as JSON");
  command->callback([options] { plot(*options); });
}
