#include "import/marian_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "import/vocabulary_files.h"

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

const std::string& piece_of(int64_t id, const std::vector<std::string>& pieces, const char* field,
                            const std::string& where) {
  if (id < 0 || id >= std::ssize(pieces))
    fail("{}: {} must be below {}, the size of the vocabulary (is {})", where, field, pieces.size(), id);
  return pieces[to_size(id)];
}

std::vector<int64_t> all_bad_words(const TextSource& source) {
  std::vector<int64_t> ids = read_bad_words(source.config);
  constexpr const char* kGeneration = "generation_config.json";
  if (!source.files.has(kGeneration)) return ids;
  const Settings generation(source.files.open_small(kGeneration)->text(), source.files.path(kGeneration));
  for (const int64_t id : read_bad_words(generation)) ids.push_back(id);
  return ids;
}

TranslationConfig read_tokens(const TextSource& source, const std::vector<std::string>& pieces) {
  const Settings& config = source.config;
  TranslationConfig t;
  const int64_t start = config.integer("decoder_start_token_id", config.integer("pad_token_id"));
  t.start = piece_of(start, pieces, "decoder_start_token_id", config.where());
  t.end = piece_of(config.integer("eos_token_id"), pieces, "eos_token_id", config.where());
  t.source_end = t.end;
  for (const int64_t id : all_bad_words(source)) {
    const std::string& piece = piece_of(id, pieces, "bad_words_ids", config.where());
    if (std::ranges::find(t.never, piece) == t.never.end()) t.never.push_back(piece);
  }
  return t;
}

Tokenizer make_tokenizer(const TextSource& source, const char* list, std::vector<std::string> pieces, bool is_source,
                         const std::string& unknown) {
  const auto splitter = choose_splitter(is_source, source.options, [&] {
    return SentencePieceFile::read(source.files.path(is_source ? "source.spm" : "target.spm"));
  });
  return Tokenizer::with_pieces(splitter, std::move(pieces), unknown, source.files.path(list));
}

}  // namespace

std::vector<int64_t> read_bad_words(const Settings& s) {
  std::vector<int64_t> ids;
  const json* sequences = s.find("bad_words_ids");
  if (!sequences) return ids;
  if (!sequences->is_array()) fail("{}: bad_words_ids must be an array", s.where());
  for (const json& sequence : *sequences) {
    if (!sequence.is_array() || sequence.size() != 1 || !sequence[0].is_number_unsigned())
      fail("{}: bad_words_ids must hold arrays of one id each; sequences of tokens are not supported", s.where());
    ids.push_back(sequence[0].get<int64_t>());
  }
  return ids;
}

ModelText read_marian_text(const TextSource& source) {
  const MarianTokenizer tokenizer = read_tokenizer(source.files);
  const char *list = "vocab.json", *target_list = tokenizer.separate ? "target_vocab.json" : list;
  const std::vector<std::string> pieces = read_pieces(source.files, list);
  const std::vector<std::string> target_pieces = tokenizer.separate ? read_pieces(source.files, target_list) : pieces;
  TranslationConfig translation = read_tokens(source, target_pieces);
  translation.unknown = tokenizer.unknown;
  override_tokens(translation, source.options);
  TokenizerPair tokenizers{make_tokenizer(source, list, pieces, true, translation.unknown),
                           make_tokenizer(source, target_list, target_pieces, false, translation.unknown)};
  return TranslatorText{std::move(tokenizers), std::move(translation)};
}

}  // namespace qkv
