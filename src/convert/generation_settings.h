// The settings of generation of a model in the Hugging Face layout: generation_config.json, or config.json of models
// that were saved without it.
#pragma once

#include <string>
#include <vector>

#include "convert/imported_model.h"
#include "io/runs/decoding_defaults.h"

namespace qkv {

struct GenerationSettings {
  DecodingDefaults defaults;           // those that have the same meaning here
  std::vector<int64_t> never = {};     // ids of suppress_tokens
  std::vector<std::string> left = {};  // names of those that would change the output and are not taken over
  std::string where = "";              // the file
};

// Reads the settings of a translation model. `starts_with_end`: the decoder starts from the end token.
// `forced`: the number of tokens after the start token that are forced.
GenerationSettings read_translation_settings(const ModelFiles& files, const Settings& config, bool starts_with_end,
                                             int64_t forced);
// Reads the settings that the model has for summaries only, in task_specific_params of config.json, and the prefix of
// texts, which may also stand in config.json itself. `usual`: the defaults of the model. Throws Error, naming file and
// field.
GenerationSettings read_summary_settings(const Settings& config, const DecodingDefaults& usual, bool starts_with_end,
                                         int64_t forced);
// Reads those of a language model that reads at most `longest` tokens.
GenerationSettings read_language_settings(const ModelFiles& files, const Settings& config, int64_t longest);

// Returns the line that names the settings that are left, or "".
std::string note_of(const GenerationSettings& settings);

}  // namespace qkv
