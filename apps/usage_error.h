// Errors in the command line, in one line, with the most similar command or option.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// Returns the error of a command that is unknown, such as `unknown command "trian"; did you mean "train"?`, or missing;
// "" if there is none. The arguments do not include the name of the program.
std::string command_error(const CLI::App& app, const std::vector<std::string>& arguments);

// Returns the error of a parse that failed. An option that does not exist comes first.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);
