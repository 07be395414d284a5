// The commands of the program: each function adds one, with its options and what it does.
#pragma once

#include <CLI/CLI.hpp>

void add_score_command(CLI::App& app);
