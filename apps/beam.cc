// qkv beam: the beam search of one sentence, step by step.
#include <memory>
#include <string>

#include "commands.h"
#include "default_options.h"
#include "options.h"
#include "output_files.h"
#include "qkv/beam_trace.h"
#include "qkv/translator.h"

namespace {

struct BeamCommand {
  std::string run, sentence, from, to, json;
  qkv::DecodingOptions search;
};

void beam(const CLI::App& command, BeamCommand given) {
  qkv::TranslateOptions options = default_options_with(given.run, given.from, given.to);
  take_defaults(command, given.search, static_cast<const qkv::DecodingOptions&>(options));
  static_cast<qkv::DecodingOptions&>(options) = given.search;
  const qkv::BeamTrace trace = qkv::Translator(given.run).trace(given.sentence, options);
  if (!given.json.empty()) write_result(given.json, qkv::beam_to_json(trace));
  if (given.json != "-") print_out(qkv::beam_to_text(trace));
}

}  // namespace

void add_beam_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("beam", "Show the beam search of a translation, step by step");
  const auto options = std::make_shared<BeamCommand>();
  command->add_option("run", options->run, "Run directory of a translator")->required();
  command->add_option("sentence,--text", options->sentence, "Sentence to translate, which is not split")->required();
  add_options(*command, options->search,
              {"n_best", "sampling", "temperature", "top_k", "top_p", "typical_p", "min_p", "seed"});
  add_language_options(*command, options->from, options->to);
  command->add_option("--json", options->json, "Write JSON to this file; - is standard output")->type_name("FILE");
  add_threads_option(*command);
  command->callback([command, options] { beam(*command, *options); });
}
