// qkv experiment: small experiments that show why the parts of a Transformer are there.
#include "program/experiments/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "options.h"
#include "output_files.h"
#include "qkv/error.h"
#include "terminal.h"

namespace {

// Shows how many models have been trained: a bar that is redrawn on a terminal, otherwise a line every 10 seconds.
class TrainedLine {
 public:
  explicit TrainedLine(std::string name) : name_(std::move(name)) {}
  ~TrainedLine() {
    if (terminal_ && is_shown_) print_error("\r\033[K");
  }
  TrainedLine(const TrainedLine&) = delete;
  TrainedLine& operator=(const TrainedLine&) = delete;

  void show(int64_t trained, int64_t all) {
    const Clock::time_point now = Clock::now();
    if (is_shown_ && !terminal_ && now - last_ < std::chrono::seconds(10)) return;
    const std::string line = fmt::format("{}: {} of {} models trained", name_, trained, all);
    if (terminal_)
      print_error("\r{}  {}\033[K", progress_bar(static_cast<double>(trained) / static_cast<double>(all)), line);
    else
      print_error("{}\n", line);
    is_shown_ = true, last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::string name_;
  const bool terminal_ = rewrites_lines();
  bool is_shown_ = false;
  Clock::time_point last_ = {};
};

struct ExperimentCommand {
  std::string name, plot, json;
  qkv::ExperimentOptions options;
};

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const qkv::Experiment& experiment : qkv::experiments()) names.push_back(experiment.name);
  return names;
}

void list_experiments() {
  for (const qkv::Experiment& experiment : qkv::experiments())
    print_out(fmt::format("{:<10} {}\n", experiment.name, experiment.summary));
}

qkv::ExperimentResult run_with_progress(const ExperimentCommand& command) {
  TrainedLine line(command.name);
  qkv::ExperimentOptions options = command.options;
  options.on_progress = [&](int64_t trained, int64_t all) { line.show(trained, all); };
  return qkv::run_experiment(command.name, options);
}

void run_experiment_command(const ExperimentCommand& command) {
  if (command.name.empty()) {
    if (!command.plot.empty() || !command.json.empty() || !command.options.data.empty())
      throw qkv::Error(fmt::format("experiment: no name, expected one of {}", fmt::join(experiment_names(), ", ")));
    return list_experiments();
  }
  require_different_files({{"--data", command.options.data}}, {{"--plot", command.plot}, {"--json", command.json}});
  const qkv::ExperimentResult result = run_with_progress(command);
  if (!command.plot.empty()) {
    const auto& all = qkv::experiments();
    const auto found = std::ranges::find(all, command.name, &qkv::Experiment::name);
    write_output(command.plot, qkv::experiment_to_svg(result, found->summary));
  }
  if (!command.json.empty())
    write_output(command.json, qkv::experiment_to_json(result, command.name, command.options.seed) + "\n");
  if (command.plot != "-" && command.json != "-") print_out(qkv::experiment_to_text(result));
}

}  // namespace

void add_experiment_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("experiment", "Show by small experiments why the parts of a Transformer are there");
  const auto options = std::make_shared<ExperimentCommand>();
  command
      ->add_option("name", options->name,
                   fmt::format("The experiment: {}; without a name, list them", fmt::join(experiment_names(), ", ")))
      ->check(CLI::IsMember(experiment_names()));
  command->add_option("--plot", options->plot, "Write an SVG picture to this file; - is standard output")
      ->type_name("FILE");
  command->add_option("--json", options->json, "Write the numbers as JSON to this file; - is standard output")
      ->type_name("FILE");
  command
      ->add_option("--seed", options->options.seed,
                   fmt::format("Seed of all random numbers [at least 0; default {}]", options->options.seed))
      ->type_name("N")
      ->check(in_range(qkv::at_least(0)));
  command
      ->add_option("--data", options->options.data,
                   "With baselines, use the bytes of this file [default generated text]")
      ->type_name("FILE");
  add_threads_option(*command);
  command->callback([options] { run_experiment_command(*options); });
}
