#include "convert/text/marian_text.h"

#include <nlohmann/json.hpp>

#include "convert/text/translator_text.h"
#include "convert/text/vocabulary_files.h"

namespace qkv {
namespace {

using nlohmann::json;

// The fields of tokenizer_config.json.
struct MarianTokenizer {
  std::string unknown = "<unk>";
  bool separate = false;  // source and target have vocabularies of their own
};

MarianTokenizer read_tokenizer(const ModelFiles& files) {
  const Settings s = read_tokenizer_config(files);
  MarianTokenizer result;
  result.separate = s.flag("separate_vocabs", false);
  const json* token = s.find("unk_token");  // older versions write an object of the token's properties
  if (token && token->is_string()) result.unknown = s.text("unk_token");
  return result;
}

std::vector<std::string> read_pieces(const ModelFiles& files, const char* list) {
  return parse_piece_ids(files.open_small(list)->text(), files.path(list));
}

Tokenizer make_tokenizer(const TextSource& source, const char* list, std::vector<std::string> pieces, bool is_source,
                         const std::string& unknown) {
  const auto splitter = choose_splitter(is_source, source.options, [&] {
    return SentencePieceFile::read(source.files.path(is_source ? "source.spm" : "target.spm"));
  });
  return Tokenizer::with_pieces(splitter, std::move(pieces), unknown, source.files.path(list))
      .fitted(is_source ? source.model.source_vocab : source.model.target_vocab, source.files.path(list));
}

}  // namespace

ModelText read_marian_text(const TextSource& source) {
  const MarianTokenizer tokenizer = read_tokenizer(source.files);
  const char *list = "vocab.json", *target_list = tokenizer.separate ? "target_vocab.json" : list;
  const std::vector<std::string> pieces = read_pieces(source.files, list);
  const std::vector<std::string> target_pieces = tokenizer.separate ? read_pieces(source.files, target_list) : pieces;
  TranslationConfig translation = read_translation_tokens(source, target_pieces);
  translation.unknown = tokenizer.unknown;
  override_tokens(translation, source.options);
  TokenizerPair tokenizers{make_tokenizer(source, list, pieces, true, translation.unknown),
                           make_tokenizer(source, target_list, target_pieces, false, translation.unknown)};
  tokenizers = spell_tokens(source, tokenizers, {{"</s>", "<pad>", translation.unknown}}, translation);
  return TranslatorText{std::move(tokenizers), std::move(translation)};
}

}  // namespace qkv
