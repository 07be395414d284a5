// A model from elsewhere, read and checked but for its numbers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "import/decoder_config.h"
#include "import/foreign_tensors.h"
#include "import/model_files.h"
#include "import/settings.h"
#include "io/encoder_run.h"
#include "io/language_run.h"
#include "io/translation_config.h"
#include "qkv/config.h"
#include "qkv/import.h"

namespace qkv {

// What turns text into tokens and back: of a translator, of a language model, of an encoder.
struct TranslatorText {
  TokenizerPair tokenizers;
  TranslationConfig translation;
};
struct LanguageText {
  LanguageConfig config;
  TextCodec codec;
};

struct EncoderText {
  EmbeddingConfig config;
  TextCodec codec;
};

struct ImportedModel {
  std::string kind;
  std::string path;  // of the file with the tensors
  ModelConfig config;
  std::variant<TranslatorText, LanguageText, EncoderText> text;
  Origins origins;
  std::shared_ptr<const void> file;  // which the origins are views of
  std::vector<std::string> notes = {};
};

ImportedModel read_marian(const ModelFiles& files, const ImportOptions& options);
ImportedModel read_decoder(DecoderFamily family, const ModelFiles& files);
ImportedModel read_bert(const ModelFiles& files, const ImportOptions& options);
ImportedModel read_ctranslate2(const ModelFiles& files, const ImportOptions& options);
ImportedModel read_argos(const ModelFiles& files, const ImportOptions& options);
ImportedModel read_torch(const std::string& path, const ImportOptions& options);

// The tokeniser of a model in the Hugging Face layout: tokenizer.model, or else tokenizer.json, vocab.json with
// merges.txt, or vocab.txt. It may have fewer tokens than the model. `config` is config.json. Throws Error, naming file
// and field.
TextCodec read_text_codec(const ModelFiles& files, const Settings& config);

// It and the tokens around a text. These are what the tokeniser puts there, or else bos_token_id and eos_token_id of
// generation_config.json or config.json; all of eos_token_id end a text.
LanguageText read_language_text(const ModelFiles& files, const Settings& config);

// The tokens of the options in place of the model's.
void override_tokens(TranslationConfig& translation, const ImportOptions& options);

// How the text of one side becomes tokens: by SentencePiece, with the options' file of this side or else what `own`
// reads; nothing with options.tokens.
std::optional<SentencePieceFile> choose_splitter(bool is_source, const ImportOptions& options,
                                                 const std::function<std::optional<SentencePieceFile>()>& own);

// The weights as a file by our names, some rows in memory at a time. Throws Error, naming the foreign file and tensor,
// if one has not the shape that the configuration asks for or holds a number that is not finite.
void write_weights(const ImportedModel& model, const std::string& path);

}  // namespace qkv
