// The options of decoding that a run's model was published with: docs/import.md.
#pragma once

#include <string>

#include "qkv/generator.h"
#include "qkv/translator.h"

namespace [[gnu::visibility("default")]] qkv {

// Return the default options, with the values of the run's decoding.json where it has some: import takes them over from
// generation_config.json. Options that a caller sets replace them. Throw Error, naming file and field, if the file is
// damaged.
TranslateOptions default_translate_options(const std::string& run_directory);
GenerateOptions default_generate_options(const std::string& run_directory);

}  // namespace qkv
