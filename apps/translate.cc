// qkv translate: lines of standard input to lines of standard output.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "commands.h"
#include "qkv/text.h"
#include "qkv/translator.h"

namespace {

struct Options {
  std::string run, input = "-";
  qkv::TranslateOptions translate;
};

void translate(Options options) {
  const qkv::Translator translator(options.run);
  const std::vector<std::string> lines = qkv::read_lines(options.input);
  const bool terminal = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 0;
  int64_t done = 0;
  options.translate.on_note = [](const std::string& note) { fmt::print(stderr, "qkv: {}\n", note); };
  if (terminal)
    options.translate.on_progress = [&](int64_t n) { fmt::print(stderr, "\r{} sentences\033[K", done += n); };
  const std::vector<std::string> translations = translator.translate(lines, options.translate);
  if (terminal) fmt::print(stderr, "\r\033[K");
  for (const std::string& line : translations) fmt::print("{}\n", line);
}

}  // namespace

void add_translate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("translate", "Translate standard input, line by line");
  const auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "Run directory")->required();
  command->add_option("--input", options->input, "File of sentences, one a line; - is standard input")
      ->capture_default_str();
  command->add_option("--beam", options->translate.beam, "Hypotheses kept a step; 1 is greedy search")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--length-penalty", options->translate.length_penalty, "Exponent of the length in a score")
      ->capture_default_str();
  command->add_option("--batch-tokens", options->translate.batch_tokens, "Source tokens times beam at one time")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  add_threads_option(*command);
  command->callback([options] { translate(*options); });
}
