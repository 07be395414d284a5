// qkv patch: activation patching of a language model or a translator between two texts.
#include <memory>
#include <string>

#include "commands.h"
#include "options.h"
#include "output_files.h"
#include "qkv/error.h"
#include "qkv/generator.h"
#include "qkv/patching.h"
#include "qkv/translator.h"

namespace {

struct PatchCommand {
  std::string run, clean, corrupted, from, to, json;
  qkv::PatchOptions options;
};

qkv::Patching patching_of(const PatchCommand& command) {
  if (is_language_model(command.run)) {
    if (!(command.from + command.to).empty())
      throw qkv::Error(fmt::format("--from and --to: {} is a language model", command.run));
    return qkv::Generator(command.run).patch(command.clean, command.corrupted, command.options);
  }
  const qkv::TranslateOptions translate = default_options_with(command.run, command.from, command.to);
  return qkv::Translator(command.run).patch(command.clean, command.corrupted, command.options, translate);
}

void patch(const PatchCommand& command) {
  const qkv::Patching found = patching_of(command);
  if (!command.json.empty()) write_result(command.json, qkv::patching_to_json(found));
  if (command.json != "-") print_out(qkv::patching_to_text(found));
}

}  // namespace

void add_patch_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "patch", "Show which hidden states, sublayers or heads carry what a model answers (activation patching)");
  const auto given = std::make_shared<PatchCommand>();
  command->add_option("run", given->run, "Run directory of a language model or a translator")->required();
  command->add_option("--clean", given->clean, "Text, or sentence to translate, that the model answers as wanted")
      ->required();
  command->add_option("--corrupted", given->corrupted, "Text with the same number of tokens and another answer")
      ->required();
  add_options(*command, given->options);
  add_language_options(*command, given->from, given->to);
  command->add_option("--json", given->json, "Write JSON to this file; - is standard output")->type_name("FILE");
  add_threads_option(*command);
  command->callback([given] { patch(*given); });
}
