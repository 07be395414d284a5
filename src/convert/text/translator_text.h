// The text of encoder-decoders in the Hugging Face layout: the special tokens that config.json and
// generation_config.json name by their ids, the languages, and lists of pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/imported_model.h"

namespace qkv {

// Reads decoder_start_token_id (or else pad_token_id), forced_bos_token_id, eos_token_id and bad_words_ids. A field of
// generation_config.json takes precedence. source_end becomes the end token. Throws Error, naming file and field, for
// an id that has no piece.
TranslationConfig read_translation_tokens(const TextSource& source, const std::vector<std::string>& pieces);

// The ids of bad_words_ids, which no translation may contain. Throws Error for a sequence of several tokens.
std::vector<int64_t> read_bad_words(const Settings& settings);

// Returns the class that tokenizer_config.json or config.json names, without the suffix "Fast"; "" if there is none.
std::string tokenizer_class_of(const TextSource& source);

// Returns the pieces of a SentencePiece model in the order of fairseq, as XLM-R, mBART and NLLB have them: <s>, <pad>,
// </s>, <unk>, and the pieces of the model without its first three.
std::vector<std::string> fairseq_pieces(const SentencePieceFile& file);

// The pieces of a translator in the Hugging Face layout, by id, and their tokenizer if that is a tokenizer.json.
struct TranslatorPieces {
  std::vector<std::string> pieces;
  std::optional<HuggingFaceTokenizer> library = {};
};

// Returns those of tokenizer.json, or else the result of `otherwise` for the SentencePiece model of this name. A
// tokenizer.json without a model only names tokens. Throws Error, naming the file.
TranslatorPieces read_translator_pieces(
    const TextSource& source, const char* splitter,
    const std::function<std::vector<std::string>(const SentencePieceFile&)>& otherwise);

// How a model spells the tokens of its languages.
struct LanguageTokens {
  bool (*is_language)(const std::string& token);
  std::string (*code_of)(const std::string& token);
  std::vector<std::string> known = {};  // the tokens of a model whose files name none
  bool mask = true;                     // whether <mask> follows the languages
};

// Sets the languages of a translation, and gives their tokens places among the pieces. The tokens are those of
// tokenizer.json (added_tokens), or else of added_tokens_decoder or additional_special_tokens in tokenizer_config.json
// or special_tokens_map.json, or the known ones. Those whose ids no file states follow the pieces. Throws Error, naming
// the file, if there are none, or if a token has an id that is not the next one.
void add_languages(const TextSource& source, const LanguageTokens& tokens, TranslatorPieces& pieces,
                   TranslationConfig& translation);

// The special tokens of a class of tokenizers, as far as files do not name them; `mask` takes the spaces before it.
struct ClassTokens {
  std::vector<std::string> all;
  std::string mask = "";
};
// Those of XLM-R, mBART and NLLB.
ClassTokens fairseq_tokens();

// Returns the text of a model whose two sides share their pieces, which text is split into by tokenizer.json or by a
// SentencePiece model, the file `splitter`, unless the options name another. With the latter a text may spell
// `special`, the tokens that files name, and those of languages. The model may have more rows than pieces; see
// Tokenizer::fitted. Applies the special tokens of the options.
ModelText share_pieces(const TextSource& source, const char* splitter, TranslatorPieces pieces,
                       TranslationConfig translation, ClassTokens special);

// Sets the tokens that a text may spell, and returns the tokenizers that find them.
TokenizerPair spell_tokens(const TextSource& source, const TokenizerPair& tokenizers, ClassTokens special,
                           TranslationConfig& translation);

}  // namespace qkv
