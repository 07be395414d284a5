// What the commands that train share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "qkv/training.h"

// --preset, --config, and an option for every value of a recipe.
class RecipeChoice {
 public:
  // The preset, by an option of this name, and --config alone.
  void add_choice(CLI::App& command, const std::string& option, const std::string& preset, const std::string& names);

  // `preset`: the one that stands if nothing is said; `values`: its recipe's; `names`: all presets, for the help.
  void add_options(CLI::App& command, const std::string& preset, const std::string& names,
                   const std::vector<qkv::RecipeOption>& values);

  // The preset, then the configuration file, then the options of the command line. R: a recipe.
  template <class R>
  R recipe(R (*preset_of)(const std::string&)) const {
    R recipe = preset_of(preset_);
    if (!config_.empty()) qkv::merge_recipe_json(recipe, config_text(), config_);
    for (const auto& [name, value] : given()) qkv::set_recipe_option(recipe, name, value);
    return recipe;
  }
  const std::string& preset() const { return preset_; }
  CLI::Option* option(const std::string& name) const;  // of the value of this name

 private:
  std::string config_text() const;
  std::vector<std::pair<std::string, std::string>> given() const;

  std::string preset_, config_;
  std::vector<std::pair<std::string, CLI::Option*>> options_;  // by the recipe's name for them
};

// Runs `train`, which is false if it was stopped early, showing how it goes. The first signal ends training after the
// present step, with the state saved, and throws Interrupted; the second ends the program.
void run_training(const qkv::TrainingConfig& limits, const std::function<bool(const qkv::TrainingObserver&)>& train);
