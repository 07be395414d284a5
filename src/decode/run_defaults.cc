// The options of decoding that a run's model was published with: docs/import.md.
#include "core/fail.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run_config.h"
#include "qkv/generator.h"
#include "qkv/translator.h"

namespace qkv {
namespace {

void apply_translate_defaults(const DecodingDefaults& defaults, TranslateOptions& options) {
  apply_defaults(defaults, options);
  options.sentences = defaults.sentences.value_or(options.sentences);
  options.source_prefix = defaults.source_prefix.value_or(options.source_prefix);
  if (options.sentences == Sentences::line)
    options.protected_parts = ProtectedParts::none;  // a summary may leave it out
}

}  // namespace

TranslateOptions default_translate_options(const std::string& run_directory) {
  TranslateOptions options;
  apply_translate_defaults(read_decoding_defaults(RunDirectory(run_directory)), options);
  return options;
}

TranslateOptions default_summary_options(const std::string& run_directory) {
  const RunDirectory run(run_directory);
  expect_kind(run, read_config(run).kind, {RunKind::translator});
  TranslateOptions options = default_translate_options(run_directory);
  apply_translate_defaults(read_summary_defaults(run), options);
  if (options.sentences != Sentences::line)
    fail(
        "{} translates sentences (sentences is {}); expected a model of whole texts: an imported BART, Pegasus or T5, "
        "or a translator trained on texts and their summaries",
        run.root(), name_of(options.sentences));
  return options;
}

GenerateOptions default_generate_options(const std::string& run_directory) {
  GenerateOptions options;
  const DecodingDefaults defaults = read_decoding_defaults(RunDirectory(run_directory));
  apply_defaults(defaults, options);
  options.max_tokens = defaults.max_tokens.value_or(options.max_tokens);
  return options;
}

}  // namespace qkv
