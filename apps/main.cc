// The program qkv. Exit status: 0 for success, 1 for failure, 2 for wrong usage, 128 + N after signal N. Errors are one
// line on standard error.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "commands.h"
#include "help.h"
#include "program/doctor/doctor.h"
#include "qkv/error.h"
#include "qkv/system.h"
#include "signals.h"
#include "usage_error.h"

namespace {

// Prints an error in one line.
void print_failure(const std::string& text) { print_error("qkv: {}\n", qkv::Error(text).what()); }

void add_commands(CLI::App& app) {
  using AddCommand = void (*)(CLI::App&);
  const std::pair<const char*, std::vector<AddCommand>> groups[] = {
      {"Train and evaluate", {add_train_command, add_evaluate_command, add_score_command}},
      {"Use",
       {add_translate_command, add_summarize_command, add_recommend_command, add_generate_command, add_chat_command,
        add_embed_command, add_classify_command, add_rerank_command, add_attend_command, add_heads_command,
        add_lens_command, add_patch_command, add_beam_command, add_explain_command, add_experiment_command,
        add_serve_command}},
      {"Models",
       {add_import_command, add_export_command, add_merge_command, add_quantize_command, add_inspect_command}},
      {"Tools", {add_data_command, add_plot_command, add_doctor_command, add_bench_command, add_completions_command}}};
  for (const auto& [group, commands] : groups)
    for (const AddCommand add : commands) {
      add(app);
      app.get_subcommands({}).back()->group(group);
    }
}

int run_command(int argc, char** argv) {
  CLI::App app("qkv: Transformer models on the CPU: translation, recommendation, language modelling", "qkv");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Show this help and exit");
  app.set_version_flag("--version", qkv::version_text, "Show version, instruction set and devices, and exit");
  app.require_subcommand(1);
  add_commands(app);
  app.footer("qkv COMMAND --help describes the options of a command.");  // after the commands, which would inherit it
  add_help_all(app);
  const std::string wrong = command_error(app, {argv + 1, argv + argc});
  if (!wrong.empty()) {
    print_failure(wrong);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    print_failure(usage_error(app, error));
    return 2;
  }
  return 0;
}

// Returns false if buffered output cannot be written, for instance because the disk is full.
bool flush_output() { return std::cout.flush() && std::fflush(stdout) == 0 && !std::ferror(stdout); }

const std::terminate_handler default_handler = std::get_terminate();

// Ends the program for a lack of memory on a thread of another library, such as SentencePiece's trainer, whose
// exceptions nobody can catch. Several threads may lack it.
[[noreturn]] void end_without_memory() {
  static std::atomic_flag ends;
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc& error) {
    while (ends.test_and_set()) pause();
    std::fprintf(stderr, "qkv: %s\n", error.what());  // without memory
    std::_Exit(1);
  } catch (...) {
  }
  default_handler();
  std::abort();
}

// Returns the exit status after an error of standard output. A pipe that its reader closed is no failure to report.
int end_of_output(const std::error_code& error) {
  if (error == std::errc::broken_pipe) return status_of_signal(SIGPIPE);
  print_failure("standard output: " + error.message());
  return 1;
}

// Opens the standard streams that are closed, so that no file takes their place. Reads and writes of them still fail.
void occupy_standard_streams() {
  for (const auto& [stream, flags] : {std::pair{0, O_WRONLY}, {1, O_RDONLY}, {2, O_RDONLY}})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) open("/dev/null", flags);  // takes the lowest free number
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_without_memory);
  occupy_standard_streams();
  prepare_signals();
  try {
    const int status = run_command(argc, argv);
    return flush_output() ? status : end_of_output({errno, std::generic_category()});
  } catch (const Interrupted& interrupted) {
    return interrupted.status;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return end_of_output(error.code());
    print_failure(error.what());
  } catch (const std::exception& error) {
    print_failure(error.what());
  }
  return 1;
}
