// The configuration of a CTranslate2 model: scalar variables of model.bin, and config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "convert/formats/ctranslate2_file.h"
#include "convert/formats/foreign_tensors.h"
#include "io/runs/translation_config.h"
#include "qkv/config.h"

namespace qkv {

// Names of the source's embeddings: with several tables, of which one is supported, and with one.
inline constexpr const char *kFirstSource = "encoder/embeddings_0/weight", *kOnlySource = "encoder/embeddings/weight";
std::string source_table(const ForeignTensors& tensors);

// Returns the configuration that follows from variables, their shapes and config.json, and marks attributes as used.
// `settings` is the text of config.json, "" if there is none. Throws Error, naming file and variable, unless the model
// is an encoder-decoder Transformer, for features that are not supported (relative or rotary positions, gated
// feed-forward layers, root-mean-square norms, grouped heads, factors of source tokens, …), and if encoder and decoder
// differ.
ModelConfig ctranslate2_model_config(const CTranslate2File& file, ForeignTensors& tensors, std::string_view settings,
                                     const std::string& where);

// Returns the special tokens: those of config.json in version 6, else those of the attributes.
TranslationConfig ctranslate2_translation(const CTranslate2File& file, ForeignTensors& tensors,
                                          std::string_view settings, const std::string& where);

}  // namespace qkv
