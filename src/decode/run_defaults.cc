// The options of decoding that a run's model was published with: docs/import.md.
#include "io/runs/decoding_defaults.h"
#include "qkv/generator.h"
#include "qkv/translator.h"

namespace qkv {

TranslateOptions default_translate_options(const std::string& run_directory) {
  TranslateOptions options;
  const DecodingDefaults defaults = read_decoding_defaults(RunDirectory(run_directory));
  apply_defaults(defaults, options);
  options.sentences = defaults.sentences.value_or(options.sentences);
  if (options.sentences == Sentences::line)
    options.protected_parts = ProtectedParts::none;  // a summary may leave it out
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
