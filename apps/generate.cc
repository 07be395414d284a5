// qkv generate: continues a prompt with a language model.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "qkv/error.h"
#include "qkv/generator.h"
#include "qkv/text.h"

namespace {

using nlohmann::ordered_json;

struct GenerateOptions {
  std::string run, prompt, prompts_file, context = "slide";
  bool stream = false, json = false;
  qkv::GenerateOptions generate;
};

void show(std::string_view text) {
  print_out(text);
  flush_out();
}

ordered_json to_json(const std::string& prompt, const qkv::Generation& found) {
  ordered_json tokens = ordered_json::array();
  for (const qkv::GeneratedToken& token : found.tokens) {
    tokens.push_back({{"text", token.text}, {"log_probability", token.log_probability}});
    for (const qkv::TokenAlternative& other : token.alternatives)
      tokens.back()["alternatives"].push_back(
          {{"text", other.text}, {"log_probability", other.log_probability}, {"end", other.end}});
  }
  return {{"prompt", prompt},
          {"text", found.text},
          {"end", qkv::names_of(found.end)[static_cast<size_t>(found.end)]},
          {"tokens", std::move(tokens)}};
}

void generate(GenerateOptions& options) {
  const qkv::Generator generator(options.run);
  options.generate.slide = options.context == "slide";
  std::vector<std::string> prompts = {options.prompt};
  if (!options.prompts_file.empty()) prompts = qkv::read_lines(options.prompts_file);
  listen_for_interrupts();
  options.generate.on_text = [&](std::string_view text) {
    if (options.stream) show(text);
    stop_if_interrupted();
  };
  const auto begin = [&](size_t i) {
    if (options.stream && i < prompts.size()) show(prompts[i]);
  };
  begin(0);
  generator.generate_all(prompts, options.generate, [&](size_t i, const qkv::Generation& found) {
    if (options.json)
      // Replaces bytes of incomplete characters.
      show(to_json(prompts[i], found).dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
    else
      show((options.stream ? "" : prompts[i] + found.text) + "\n");
    if (options.generate.alternatives > 0 && !options.json) show("\n" + qkv::tokens_to_text(found) + "\n");
    begin(i + 1);
  });
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "Go on from a text with a language model");
  const auto options = std::make_shared<GenerateOptions>();
  qkv::GenerateOptions& g = options->generate;
  command->add_option("run", options->run, "Run directory of a language model")->required();
  CLI::Option* prompt = command->add_option("--prompt", options->prompt, "Text to go on from");
  command->add_option("--prompts", options->prompts_file, "File of prompts, one a line; - is standard input")
      ->excludes(prompt);
  command->add_option("--max-tokens", g.max_tokens, "Most tokens of a text")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--temperature", g.temperature, "Draw from p^(1/temperature); 0: the most probable token")
      ->capture_default_str();
  command->add_option("--top-k", g.top_k, "Draw from the most probable tokens; 0: from all")->capture_default_str();
  command->add_option("--top-p", g.top_p, "Draw from the fewest tokens with so much probability")
      ->capture_default_str();
  command->add_option("--min-p", g.min_p, "Draw from tokens with so much of the highest probability")
      ->capture_default_str();
  command
      ->add_option("--repetition-penalty", g.repetition_penalty,
                   "Multiplies the log-probability of tokens that stand in the text")
      ->capture_default_str();
  command->add_option("--stop", g.stop, "Text that ends it; may be given again")->take_all()->expected(1);
  command->add_option("--seed", g.seed, "Of what is drawn")->capture_default_str();
  command->add_option("--context", options->context, "At the model's max_length: slide, or stop")
      ->check(CLI::IsMember({"slide", "stop"}))
      ->capture_default_str();
  CLI::Option* stream = command->add_flag("--stream", options->stream, "Print the text as it grows");
  command->add_flag("--json", options->json, "Print JSON, with the log-probability of each token")->excludes(stream);
  command
      ->add_option("--explain", g.alternatives,
                   "Show the most probable tokens for each one, so many; with --json as members of its tokens")
      ->expected(0, 1)
      ->default_str("5")
      ->check(CLI::Range(1, 1000));
  command->add_option("--batch", g.batch, "Prompts that are worked on together; changes no text")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_threads_option(*command);
  command->callback([options] { generate(*options); });
}
