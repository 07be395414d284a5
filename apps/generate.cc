// qkv generate: continues prompts with a language model.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "commands.h"
#include "default_options.h"
#include "options.h"
#include "parts.h"
#include "program/lines/jobs.h"
#include "qkv/generator.h"
#include "qkv/text.h"
#include "signals.h"

namespace {

struct GenerateOptions {
  std::string run, prompt, prompts_file, context = "slide";
  bool stream = false, json = false;
  qkv::GenerateOptions generate;
  qkv::Placement placement;
  PartsOptions parts;
};

void show(std::string_view text) {
  print_out(text);
  flush_out();
}

// Prints each text while it is generated.
void stream(const qkv::Generator& generator, const std::vector<std::string>& prompts, qkv::GenerateOptions options) {
  options.on_text = [](std::string_view text) {
    show(text);
    stop_if_interrupted();
  };
  const auto begin = [&](size_t i) {
    if (i < prompts.size()) show(prompts[i]);
  };
  begin(0);
  generator.generate_all(prompts, options, [&](size_t i, const qkv::Generation& found) {
    show("\n");
    if (options.alternatives > 0) show("\n" + qkv::tokens_to_text(found) + "\n");
    begin(i + 1);
  });
}

void generate(const GenerateOptions& options) {
  const qkv::Generator generator(options.run, qkv::Generator::kCacheBytes, options.placement);
  std::vector<std::string> prompts = {options.prompt};
  if (!options.prompts_file.empty()) prompts = qkv::read_lines(options.prompts_file);
  listen_for_interrupts();
  if (options.stream) return stream(generator, prompts, options.generate);
  qkv::LineOutput output{print_out};
  output.progress = [](int64_t) {
    flush_out();
    stop_if_interrupted();
  };
  qkv::generate_lines(generator, prompts, options.generate, options.json, output);
}

void generate_parts(const GenerateOptions& options) {
  PartsJob job(options.parts);
  const qkv::Generator generator(options.run, qkv::Generator::kCacheBytes, options.placement);
  generator.generate_all({}, options.generate);  // checks the options
  job.run([&](qkv::LineReader& lines, const qkv::LineOutput& output) {
    qkv::generate_lines(generator, qkv::read_all(lines), options.generate, options.json, output);
  });
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text with a language model");
  const auto options = std::make_shared<GenerateOptions>();
  command->add_option("run", options->run, "Run directory of a language model")->required();
  CLI::Option* prompt = command->add_option("--prompt", options->prompt, "Text to continue");
  command->add_option("--prompts", options->prompts_file, "File of prompts, one per line; - is standard input")
      ->type_name("FILE")
      ->excludes(prompt);
  add_options(*command, options->generate, {"slide", "alternatives"});
  add_options(*command, options->placement);
  command
      ->add_option("--context", options->context,
                   "At the model's max_length: slide discards the older half of the text and continues, stop ends it")
      ->check(CLI::IsMember({"slide", "stop"}))
      ->capture_default_str()
      ->group("Execution");
  CLI::Option* stream = command->add_flag("--stream", options->stream, "Print the text while it is generated");
  command->add_flag("--json", options->json, "Print JSON, with the log-probability of each token")->excludes(stream);
  command
      ->add_option("--explain", options->generate.alternatives,
                   "Show this many most probable tokens for each token (off by default; 5 without a number)")
      ->expected(0, 1)
      ->default_str("5")
      ->check(CLI::Range(1, 1000));
  add_parts_options(*command, options->parts, {"--prompt", "--prompts", "--stream"});
  add_threads_option(*command);
  command->callback([options, command] {
    take_defaults(*command, options->generate, qkv::default_generate_options(options->run));
    options->generate.slide = options->context == "slide";
    options->parts.given() ? generate_parts(*options) : generate(*options);
  });
}
