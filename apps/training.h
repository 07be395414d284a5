// Options and progress of the commands that train.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "qkv/training.h"

// The options of a recipe: --preset, if it has presets, --config, and one for each value.
class RecipeOptions {
 public:
  // Adds an option for the preset and --config. `help` names the presets.
  void add_preset(CLI::App& command, const std::string& option, const std::string& preset, const std::string& help);

  // Adds --preset, with `preset` as default and `names` of all presets, --config, and an option for each value.
  void add_options(CLI::App& command, const std::string& preset, const std::string& names,
                   const std::vector<qkv::RecipeOption>& values);

  // The same for a recipe without presets.
  void add_options(CLI::App& command, const std::vector<qkv::RecipeOption>& values);

  qkv::RecipeChoice choice() const { return {preset_, config_, given()}; }
  const std::string& preset() const { return preset_; }
  CLI::Option* option(const std::string& name) const;  // of a value

 private:
  void add_config(CLI::App& command);
  void add_values(CLI::App& command, const std::vector<qkv::RecipeOption>& values);
  qkv::RecipeValues given() const;

  std::string preset_, config_;
  std::vector<std::pair<std::string, CLI::Option*>> options_;  // by their names in the recipe
};

// Adds --distributed and --rank-timeout.
void add_rank_options(CLI::App& command, qkv::RankOptions& ranks);

// The run that a command trains.
struct TrainedRun {
  std::string out;   // its directory
  std::string next;  // a command that uses it
  bool json = false;
  std::string unit = "tokens";  // that the speed counts
};

// Adds --json.
void add_json_option(CLI::App& command, TrainedRun& run);

// Calls `train`, which returns false if it was stopped early, and shows its progress. A signal ends training after the
// current step, with its state saved, and throws Interrupted; before the first step it ends the program at once. At the
// end it reports where the model is.
void show_training(const TrainedRun& run, const qkv::TrainingConfig& limits,
                   const std::function<bool(const qkv::TrainingObserver&)>& train);
