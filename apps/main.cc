// The program: one command a run. Exit 0 done, 1 failed, 2 wrong usage; each error is one line on standard error.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include "commands.h"
#include "qkv/version.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("qkv: the Transformer, complete and native on the CPU", "qkv");
  app.require_subcommand(0, 1);  // so that an unknown command is named as an unexpected argument
  app.set_version_flag("--version", qkv::version);
  add_train_command(app);
  add_translate_command(app);
  add_recommend_command(app);
  add_generate_command(app);
  add_embed_command(app);
  add_score_command(app);
  add_evaluate_command(app);
  add_attend_command(app);
  add_inspect_command(app);
  add_import_command(app);
  add_export_command(app);
  add_quantize_command(app);
  add_bench_command(app);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("a command (see qkv --help)");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "qkv: {}\n", error.what());
    return 2;
  }
  return 0;
}

// What is still in the buffer may find the disk full.
bool flush_output() { return std::cout.flush() && std::fflush(stdout) == 0 && !std::ferror(stdout); }

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = run(argc, argv);
    if (flush_output()) return status;
    fmt::print(stderr, "qkv: standard output: {}\n", std::strerror(errno));
  } catch (const Interrupted&) {
  } catch (const std::exception& error) {
    fmt::print(stderr, "qkv: {}\n", error.what());
  }
  return 1;
}
