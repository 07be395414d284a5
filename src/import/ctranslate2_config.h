// What a CTranslate2 model says of itself: scalar variables of model.bin, and config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/ctranslate2_file.h"
#include "import/foreign_tensors.h"
#include "io/translation_config.h"
#include "qkv/config.h"

namespace qkv {

// The configuration that variables, their shapes and config.json give. Attributes are marked as used in `tensors`.
// Throws Error, naming file and variable: no encoder-decoder Transformer, what there is not here (relative or rotary
// positions, gated feed-forward layers, root-mean-square norms, grouped heads, factors of source tokens, …), sides that
// differ where ours cannot. `settings` is the text of config.json, "" where there is none.
ModelConfig ctranslate2_model_config(const CTranslate2File& file, ForeignTensors& tensors, std::string_view settings,
                                     const std::string& where);

// The special tokens: from config.json for version 6, else from attributes.
TranslationConfig ctranslate2_translation(const CTranslate2File& file, ForeignTensors& tensors,
                                          std::string_view settings, const std::string& where);

}  // namespace qkv
