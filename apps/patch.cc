// qkv patch: activation patching of a language model or a translator between two texts.
#include <memory>
#include <string>

#include "commands.h"
#include "options.h"
#include "output_files.h"
#include "qkv/error.h"
#include "qkv/generator.h"
#include "qkv/patching.h"
#include "qkv/runs.h"
#include "qkv/translator.h"

namespace {

struct PatchCommand {
  std::string run, clean, corrupted, from, to, json;
  qkv::PatchOptions options;
};

qkv::Patching patching_of(const PatchCommand& command) {
  const qkv::RunKind kind = qkv::inspect(command.run).kind;
  if (kind == qkv::RunKind::language_model) {
    if (!(command.from + command.to).empty())
      throw qkv::Error(fmt::format("--from and --to: {} is a language model", command.run));
    return qkv::Generator(command.run).patch(command.clean, command.corrupted, command.options);
  }
  if (kind != qkv::RunKind::translator)
    throw qkv::Error(fmt::format("{} is a run of the kind {}; expected a language model or a translator", command.run,
                                 names_of(kind)[static_cast<size_t>(kind)]));
  qkv::TranslateOptions translate = qkv::default_translate_options(command.run);
  translate.source_language = command.from, translate.target_language = command.to;
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
