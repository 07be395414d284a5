// Options of how logs of users and items are read, of several commands.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <string>

// Adds --separator, --time-format and --skip-bad-lines, which set members of qkv::InteractionOptions.
template <class Options>
std::array<CLI::Option*, 3> add_log_options(CLI::App& command, Options& options) {
  return {command
              .add_option("--separator", options.separator,
                          "Text between the columns of the log, such as \"|\" or \"\\t\"; by default found by its "
                          "first line")
              ->type_name("TEXT"),
          command
              .add_option("--time-format", options.time_format,
                          "Format of the times, such as %m/%d/%Y or \"%d.%m.%Y %H:%M\"; by default numbers or ISO 8601")
              ->type_name("FORMAT"),
          command.add_flag("--skip-bad-lines", options.skip_bad_lines,
                           "Skip lines of the log that cannot be read, and count them")};
}
