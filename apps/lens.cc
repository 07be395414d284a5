// qkv lens: what a model with a decoder would predict after each of its layers.
#include <memory>
#include <string>

#include "commands.h"
#include "output_files.h"
#include "qkv/error.h"
#include "qkv/generator.h"
#include "qkv/logit_lens.h"
#include "qkv/translator.h"

namespace {

struct LensOptions {
  std::string run, text, target, from, to, json;
};

qkv::LogitLens lens_of(const LensOptions& options) {
  if (is_language_model(options.run)) {
    if (!options.target.empty())
      throw qkv::Error(fmt::format("--target: {} is a language model; give it one text", options.run));
    if (!(options.from + options.to).empty())
      throw qkv::Error(fmt::format("--from and --to: {} is a language model", options.run));
    return qkv::Generator(options.run).lens(options.text);
  }
  const qkv::TranslateOptions translate = default_options_with(options.run, options.from, options.to);
  return qkv::Translator(options.run).lens(options.text, options.target, translate);
}

void lens(const LensOptions& options) {
  const qkv::LogitLens found = lens_of(options);
  if (!options.json.empty()) write_result(options.json, qkv::lens_to_json(found));
  if (options.json != "-") print_out(qkv::lens_to_text(found));
}

}  // namespace

void add_lens_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("lens", "Show what a language model or a translator predicts after each layer");
  const auto options = std::make_shared<LensOptions>();
  command->add_option("run", options->run, "Run directory of a language model or a translator")->required();
  command->add_option("text,--text", options->text, "Text, or sentence to translate")->required();
  command->add_option("--target", options->target, "Target sentence [default the model's translation]");
  add_language_options(*command, options->from, options->to);
  command->add_option("--json", options->json, "Write JSON to this file; - is standard output")->type_name("FILE");
  add_threads_option(*command);
  command->callback([options] { lens(*options); });
}
