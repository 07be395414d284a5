// The help of the program. --help of a command shows the options that are used most, and names the groups of all
// others; --help-all shows every option, by group.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "command_text.h"

// The description of an option.
struct OptionHelp {
  std::string text;      // what the option does
  std::string accepted;  // accepted values, such as "at least 0"; "" for any
  std::string value;     // default; "" for none
  std::string group;     // "model", "optimizer", …
  bool common = false;   // shown by --help
};

// Sets the description of an option, and the group that lists it: its own one or, for a common option, the first.
void describe(CLI::Option& option, const OptionHelp& help);

// Returns what follows the name of a command: "RUN [OPTIONS]".
std::string usage(const CommandText& command);

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// Adds --help-all to each command below `app` that has groups of options.
void add_help_all(CLI::App& app);
