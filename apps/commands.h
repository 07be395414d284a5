// The commands of the program. Each function adds one command with its options and its action.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "qkv/translator.h"

void add_train_command(CLI::App& app);
void add_translate_command(CLI::App& app);
void add_summarize_command(CLI::App& app);
void add_recommend_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_embed_command(CLI::App& app);
void add_classify_command(CLI::App& app);
void add_rerank_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_score_command(CLI::App& app);
void add_evaluate_command(CLI::App& app);
void add_attend_command(CLI::App& app);
void add_beam_command(CLI::App& app);
void add_lens_command(CLI::App& app);
void add_patch_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_heads_command(CLI::App& app);
void add_experiment_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_quantize_command(CLI::App& app);
void add_merge_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_plot_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_completions_command(CLI::App& app);

// Adds --from and --to, the languages of a translation by a model with several.
void add_language_options(CLI::App& command, std::string& from, std::string& to);
// Returns the default options of a translator, with these languages.
qkv::TranslateOptions default_options_with(const std::string& run, const std::string& from, const std::string& to);

// Returns whether a run is a language model; otherwise it is a translator. Throws Error for a run of another kind.
bool is_language_model(const std::string& run);

// Adds --threads, which takes effect when it is parsed.
void add_threads_option(CLI::App& command);

// Write to standard output. Throw std::system_error if it cannot be written.
void print_out(std::string_view text);
void flush_out();
// Returns a value as one line. Text that is not UTF-8 gets U+FFFD.
std::string json_line(const nlohmann::ordered_json& json);
// Writes it to standard output.
void write_json_line(const nlohmann::ordered_json& json);

// Prints to standard error as far as that can be written: its loss ends no command.
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... arguments) {
  const std::string text = fmt::format(format, std::forward<T>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// Returns the contents of a file. Throws qkv::Error, naming it, if it cannot be read.
std::string read_text_file(const std::string& path);
// The same; - is standard input.
std::string read_input(const std::string& path);
// Returns the path for messages; "standard input" for -.
std::string input_name(const std::string& path);
// Replaces a file atomically. Throws qkv::Error, naming it, if it cannot be written.
void write_text_file(const std::string& path, const std::string& text);

inline double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
