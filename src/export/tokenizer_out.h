// The files from which transformers' tokenisers make the ids of a run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/language_run.h"
#include "io/run_directory.h"

namespace qkv {

// Into the directory: tokenizer.model, or for bytes and characters a tokenizer.json of them; tokenizer_config.json. A
// text starts after `ends.start`.
void write_language_tokenizer(const std::string& directory, const TextCodec& codec, const TextEnds& ends,
                              int64_t max_length);

// MarianTokenizer's: source.spm and target.spm where there are any, vocab.json, target_vocab.json where the
// vocabularies differ, tokenizer_config.json. Throws Error, beginning with `where` and naming the field, for what it
// cannot do: lower-case, begin a source sentence with a token, end it with another than the translation's.
void write_translation_tokenizers(const std::string& directory, const TokenizerPair& tokenizers,
                                  const TranslationConfig& translation, int64_t max_length, const std::string& where);

// vocab.json: {name: id}.
void write_vocabulary(const std::string& path, const std::vector<std::string>& names);

}  // namespace qkv
