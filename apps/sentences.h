// Subcommands of qkv data that work on sentences.
#pragma once

#include <CLI/CLI.hpp>

void add_sentences_command(CLI::App& data);
void add_abbreviations_command(CLI::App& data);
