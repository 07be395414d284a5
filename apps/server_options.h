// The options of `qkv serve`, from the command line and a file.
#pragma once

#include <CLI/CLI.hpp>

#include "qkv/server.h"

// Adds the runs, --config FILE and an option for each field. The command line overrides the file, wherever --config is in
// it. The options must outlive the command.
void add_server_options(CLI::App& command, qkv::ServerOptions& options);
