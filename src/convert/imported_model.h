// A model from another project: its configuration and text are read and checked, its weights are still in the file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "convert/formats/foreign_tensors.h"
#include "convert/model_files.h"
#include "convert/peft_adapter.h"
#include "convert/sentence_transformers.h"
#include "convert/settings.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/run_kinds.h"
#include "io/runs/translation_config.h"
#include "qkv/classifier.h"
#include "qkv/config.h"
#include "qkv/import.h"

namespace qkv {

// How text becomes tokens and back, in each kind of model.
struct TranslatorText {
  TokenizerPair tokenizers;
  TranslationConfig translation;
};
struct LanguageText {
  LanguageConfig config;
  TextCodec codec;
  ChatFiles chat = {};
};
struct EncoderText {
  EmbeddingConfig config;
  TextCodec codec;
};
using ModelText = std::variant<TranslatorText, LanguageText, EncoderText>;

// The sources from which the text of a model in the Hugging Face layout is read.
struct TextSource {
  const ModelFiles& files;
  const Settings& config;  // config.json
  const ModelConfig& model;
  const ImportOptions& options;
  bool embeds = false;  // the text is only read, so a language model needs no tokens that start and end a text
};

struct ImportedModel {
  std::string kind;  // for people
  std::string path;  // of the file with the tensors
  ModelConfig config;
  ModelText text;
  Origins origins;
  std::shared_ptr<const void> file;  // owns the bytes of the origins
  std::vector<std::string> notes = {};
  std::vector<DenseModule> dense = {};                      // linear layers after the pooling of an embedder
  std::optional<ClassificationConfig> classification = {};  // of a classifier, whose head is among the origins
  std::shared_ptr<const PeftAdapter> adapter = {};          // merged into the weights; may be null
  DecodingDefaults decoding = {};                           // of a translator or a language model
  DecodingDefaults summary = {};                            // of a translator of whole texts, for summaries
};

ImportedModel read_hugging_face(const ModelFiles& files, const ImportOptions& options);
ImportedModel read_ctranslate2(const ModelFiles& files, const ImportOptions& options);
ImportedModel read_argos(const ModelFiles& files, const ImportOptions& options);
ImportedModel read_gguf(const std::string& path);
ImportedModel read_marian(const std::string& path, const ImportOptions& options);
ImportedModel read_torch(const std::string& path, const ImportOptions& options);

// Reads the tokenizer of a model in the Hugging Face layout: tokenizer.json, or else tokenizer.model, vocab.json with
// merges.txt, or vocab.txt. `tokenizer_class` is that of vocab.json with merges.txt where tokenizer_config.json names
// none. The tokenizer may have fewer tokens than the model. Throws Error, naming file and field.
TextCodec read_text_codec(const ModelFiles& files, const std::string& tokenizer_class);

// Reads the tokenizer.json of a model, without the tokens around a text; nothing if there is none. Throws Error, naming
// file and field.
std::optional<HuggingFaceTokenizer> read_library_tokenizer(const ModelFiles& files);

// Reads the tokenizer, the chat templates and the tokens around a text: the start that the tokenizer adds, or else
// bos_token_id of generation_config.json or config.json; as ends each token of eos_token_id in both files, eos_token of
// tokenizer_config.json, and the token that ends an answer in the chat template.
LanguageText read_language_text(const TextSource& source, const std::string& tokenizer_class);

// Replaces the model's special tokens by those of the options.
void override_tokens(TranslationConfig& translation, const ImportOptions& options);

// Returns the SentencePiece model that splits the text of one side: the file that the options name, or else the result
// of `own`. With options.tokens text is already split, and there is none.
std::optional<SentencePieceFile> choose_splitter(bool is_source, const ImportOptions& options,
                                                 const std::function<std::optional<SentencePieceFile>()>& own);

// Writes the weights by our names, keeping some rows in memory at a time. Throws Error, naming the file and the tensor,
// if a tensor does not have the shape that the configuration asks for or holds a number that is not finite.
void write_weights(const ImportedModel& model, const std::string& path);
// Write the head of a classifier, and the linear layers of an embedder, in the same way.
void write_head(const ImportedModel& model, const std::string& path);
void write_dense(const ImportedModel& model, const std::string& path);

}  // namespace qkv
