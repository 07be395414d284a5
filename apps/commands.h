// The commands of the program: each function adds one, with its options and what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>

void add_train_command(CLI::App& app);
void add_translate_command(CLI::App& app);
void add_recommend_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_embed_command(CLI::App& app);
void add_score_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_attend_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_quantize_command(CLI::App& app);
void add_bench_command(CLI::App& app);

// Thrown by a command that was interrupted and has said so: the program ends with status 1 and no further line.
struct Interrupted {};

// After this the first Ctrl-C (or SIGTERM) is told by interrupted(), and by stop_if_interrupted(), which then throws
// Interrupted; the second one ends the program.
void listen_for_interrupts();
bool interrupted();
void stop_if_interrupted();

// Adds --threads, which acts at once.
void add_threads_option(CLI::App& command);

// Standard output; both throw qkv::Error where it cannot be written.
void print_out(std::string_view text);
void flush_out();

// Writes a whole file or leaves what was there; throws qkv::Error naming it.
void write_text_file(const std::string& path, const std::string& text);

inline double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
