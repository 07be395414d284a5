// The run of a language model: its model, and how text becomes its tokens.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/run_directory.h"
#include "model/transformer.h"
#include "qkv/language.h"
#include "text/text_codec.h"

namespace qkv {

// language.json, and the file of its unit: vocabulary.json of characters, tokenizer.model of pieces, tokenizer.json of
// byte pieces and word pieces. Throws Error, naming the file.
LanguageConfig load_language(const RunDirectory& run);
TextCodec load_codec(const RunDirectory& run);
TextCodec load_codec(const RunDirectory& run, TextUnit unit);
void save_codec(const RunDirectory& run, const TextCodec& codec);

// The token with this spelling. Throws Error, beginning with `where`, if the vocabulary has none.
int32_t id_of(const std::string& piece, const TextCodec& codec, const std::string& where);

// The tokens around a text. Throws Error, beginning with `where`, for a piece that the vocabulary does not have, and if
// there is no end.
struct TextEnds {
  int32_t start = 0;
  std::vector<int32_t> ends;   // one at least
  bool starts_prompts = true;  // start stands before a prompt, too, and not only before a text from nothing

  // What a model reads that goes on from a prompt.
  std::vector<int32_t> beginning(std::span<const int32_t> prompt) const;
};
TextEnds ends_of(const LanguageConfig& config, const TextCodec& codec, const std::string& where);

struct LanguageRun {
  TextCodec codec;
  TextEnds ends;
  std::unique_ptr<Transformer<float>> model;  // a decoder alone, with the codec's tokens
};

// From a directory that is not trusted. Throws Error, naming the file.
LanguageRun load_language_model(const std::string& directory);

}  // namespace qkv
