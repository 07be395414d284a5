// The files of tokenizers of transformers that give the ids of a run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/runs/run_kinds.h"
#include "io/runs/translation_config.h"

namespace qkv {

// Writes tokenizer.model or, for bytes and characters, a tokenizer.json, and tokenizer_config.json. The tokenizer puts
// `ends.start` before a text.
void write_language_tokenizer(const std::string& directory, const TextCodec& codec, const TextEnds& ends,
                              int64_t max_length);

inline constexpr const char* kMarianPad = "<pad>";

// Writes the files of MarianTokenizer: source.spm and target.spm if there are any, vocab.json, target_vocab.json if the
// vocabularies differ, tokenizer_config.json. adds_pad: kMarianPad follows the pieces and is the padding token, which
// otherwise is the token that a translation starts from. Throws Error, beginning with `where` and naming the field, for
// features that the class lacks: to lower-case text, to start a source sentence with a token, to end it with another
// token than the translation's.
void write_translation_tokenizers(const std::string& directory, const TokenizerPair& tokenizers,
                                  const TranslationConfig& translation, bool adds_pad, int64_t max_length,
                                  const std::string& where);

// Returns the pieces by id.
std::vector<std::string> pieces_by_id(const Tokenizer& tokenizer);

// Writes vocab.json, {name: id}.
void write_vocabulary(const std::string& path, const std::vector<std::string>& names);

}  // namespace qkv
