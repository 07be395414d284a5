#include "convert/text/translator_text.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "io/runs/tokenizer_files.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr size_t kMaxTokenizerJson = size_t{1} << 27;  // bytes
constexpr const char* kGenerationFile = "generation_config.json";

// A token that the files of a model add to a vocabulary. The id is -1 where they do not state it.
struct NamedToken {
  int64_t id = -1;
  std::string text;
};

std::vector<NamedToken> tokens_of_library(const ModelFiles& files) {
  std::vector<NamedToken> tokens;
  if (!files.has("tokenizer.json")) return tokens;
  const auto bytes = files.open("tokenizer.json");
  const std::string where = files.path("tokenizer.json");
  if (bytes->text().size() > kMaxTokenizerJson)
    fail("{}: must have at most 128 MiB (has {} bytes)", where, bytes->text().size());
  const Settings settings(bytes->text(), where);
  const json* added = settings.find("added_tokens");
  if (!added) return tokens;
  if (!added->is_array()) fail("{}: added_tokens must be an array", where);
  for (const json& token : *added) {
    const Settings own(token.dump(), where + ": added_tokens");
    tokens.push_back({own.integer("id"), own.text("content")});
  }
  return tokens;
}

std::vector<NamedToken> tokens_of_settings(const Settings& settings) {
  std::vector<NamedToken> tokens;
  for (const AddedToken& token : added_tokens_of(settings)) tokens.push_back({token.id, token.text});
  if (!tokens.empty()) return tokens;
  for (const char* name : {"additional_special_tokens", "extra_special_tokens"}) {
    const json* list = settings.find(name);
    if (!list || !list->is_array()) continue;  // extra_special_tokens may be an object of other names
    for (const json& token : *list) {
      const json* text = token.is_object() && token.contains("content") ? &token.at("content") : &token;
      if (!text->is_string()) fail("{}: {} must hold tokens", settings.where(), name);
      tokens.push_back({-1, text->get<std::string>()});
    }
    if (!tokens.empty()) return tokens;
  }
  return tokens;
}

// Returns the named tokens of the first file that has a language.
std::vector<NamedToken> find_languages(const TextSource& source, const LanguageTokens& languages) {
  const auto complete = [&](const std::vector<NamedToken>& tokens) {
    return std::ranges::any_of(tokens, [&](const NamedToken& token) { return languages.is_language(token.text); });
  };
  std::vector<NamedToken> tokens = tokens_of_library(source.files);
  if (complete(tokens)) return tokens;
  tokens = tokens_of_settings(read_tokenizer_config(source.files));
  if (complete(tokens)) return tokens;
  constexpr const char* kMap = "special_tokens_map.json";
  if (source.files.has(kMap))
    tokens = tokens_of_settings(Settings(source.files.open_small(kMap)->text(), source.files.path(kMap)));
  if (complete(tokens)) return tokens;
  tokens.clear();
  for (const std::string& token : languages.known) tokens.push_back({-1, token});
  if (tokens.empty())
    fail("{}: found no languages; expected their tokens in tokenizer.json, tokenizer_config.json or {}",
         source.files.path(), kMap);
  return tokens;
}

// The added tokens of a tokenizer, in the order of their ids.
std::vector<NamedToken> tokens_of_tokenizer(const HuggingFaceTokenizer& tokenizer) {
  std::vector<NamedToken> tokens;
  for (const AddedToken& token : tokenizer.spec().added) tokens.push_back({token.id, token.text});
  return tokens;
}

// Whether tokenizer.json is a tokenizer, and not only a list of added tokens.
bool has_library_model(const ModelFiles& files) {
  if (!files.has("tokenizer.json")) return false;
  constexpr std::array<std::string_view, 2> kLists = {"vocab", "merges"};
  const auto bytes = files.open("tokenizer.json");
  return parse_json_lists(bytes->text(), files.path("tokenizer.json"), "model", kLists, [](const JsonItem&) {})
      .contains("model");
}

// Gives a token its place among the pieces.
void place(const NamedToken& token, std::vector<std::string>& pieces, const std::string& where) {
  if (token.id < 0) {
    if (std::ranges::find(pieces, token.text) == pieces.end()) pieces.push_back(token.text);
    return;
  }
  if (token.id > std::ssize(pieces))
    fail("{}: the token {} must have at most the next id, {} (has {})", where, excerpt(token.text), pieces.size(),
         token.id);
  if (token.id == std::ssize(pieces)) pieces.push_back(token.text);
  if (pieces[to_size(token.id)] != token.text)
    fail("{}: the token {} has the id {} of {}", where, excerpt(token.text), token.id,
         excerpt(pieces[to_size(token.id)]));
}

const std::string& piece_of(int64_t id, const std::vector<std::string>& pieces, const char* field,
                            const std::string& where) {
  if (id < 0 || id >= std::ssize(pieces))
    fail("{}: {} must be below {}, the size of the vocabulary (is {})", where, field, pieces.size(), id);
  return pieces[to_size(id)];
}

// Returns an id, which may be a list of one.
int64_t single_id(const Settings& s, const char* name) {
  const json* value = s.find(name);
  if (!value || !value->is_array()) return s.integer(name);
  if (value->size() != 1 || !value->front().is_number_integer())
    fail("{}: {} must be one id in a translation model (is {})", s.where(), name, excerpt(value->dump()));
  return value->front().get<int64_t>();
}

// transformers generates forced_eos_token_id in place of the last token of a translation that reaches its maximum
// length. For the end token that is the truncation that we have.
void check_forced_end(const Settings& s, int64_t end) {
  constexpr const char* kName = "forced_eos_token_id";
  const json* forced = s.find(kName);
  if (forced && *forced != end && *forced != json::array({end}))
    fail("{}: {} must be eos_token_id, {} (is {})", s.where(), kName, end, excerpt(forced->dump()));
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

TranslationConfig read_translation_tokens(const TextSource& source, const std::vector<std::string>& pieces) {
  std::vector<const Settings*> files;
  std::optional<Settings> generation;
  if (source.files.has(kGenerationFile)) {
    generation.emplace(source.files.open_small(kGenerationFile)->text(), source.files.path(kGenerationFile));
    files.push_back(&*generation);
  }
  files.push_back(&source.config);
  const auto settings_with = [&](const char* name) {
    for (const Settings* file : files)
      if (file->find(name)) return file;
    return files.back();
  };
  const auto piece = [&](const char* name) {
    const Settings& from = *settings_with(name);
    return piece_of(single_id(from, name), pieces, name, from.where());
  };
  constexpr const char *kStart = "decoder_start_token_id", *kForced = "forced_bos_token_id";
  TranslationConfig t;
  t.start = piece(settings_with(kStart)->find(kStart) ? kStart : "pad_token_id");
  t.end = piece("eos_token_id");
  t.source_end = t.end;
  check_forced_end(*settings_with("forced_eos_token_id"), single_id(*settings_with("eos_token_id"), "eos_token_id"));
  if (settings_with(kForced)->find(kForced)) t.first = piece(kForced);
  for (const Settings* file : files)
    for (const int64_t id : read_bad_words(*file)) {
      const std::string& never = piece_of(id, pieces, "bad_words_ids", file->where());
      if (std::ranges::find(t.never, never) == t.never.end()) t.never.push_back(never);
    }
  return t;
}

std::string tokenizer_class_of(const TextSource& source) {
  std::string name = read_tokenizer_config(source.files).text("tokenizer_class", "");
  if (name.empty()) name = source.config.text("tokenizer_class", "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

std::vector<std::string> fairseq_pieces(const SentencePieceFile& file) {
  const Tokenizer tokenizer = Tokenizer::from_serialized(file.bytes, file.where);
  constexpr const char* kFairseqFirst[] = {"<unk>", "<s>", "</s>"};
  for (int32_t id = 0; id < 3; id++)
    if (tokenizer.size() <= id || tokenizer.piece(id) != kFairseqFirst[id])
      fail("{}: piece {} must be {}", file.where, id, kFairseqFirst[id]);
  std::vector<std::string> pieces = {"<s>", "<pad>", "</s>", "<unk>"};
  for (int32_t id = 3; id < tokenizer.size(); id++) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

TranslatorPieces read_translator_pieces(
    const TextSource& source, const char* splitter,
    const std::function<std::vector<std::string>(const SentencePieceFile&)>& otherwise) {
  const ModelFiles& files = source.files;
  if (files.has(splitter) && !has_library_model(files))
    return {otherwise(SentencePieceFile::read(files.path(splitter)))};
  TranslatorPieces result{{}, read_library_tokenizer(files)};
  if (!result.library) fail("{}: expected tokenizer.json or {}", files.path(), splitter);
  for (int32_t id = 0; id < result.library->size(); id++) result.pieces.push_back(result.library->piece(id));
  return result;
}

void add_languages(const TextSource& source, const LanguageTokens& languages, TranslatorPieces& pieces,
                   TranslationConfig& translation) {
  std::vector<NamedToken> tokens =
      pieces.library ? tokens_of_tokenizer(*pieces.library) : find_languages(source, languages);
  std::ranges::stable_sort(tokens, {}, &NamedToken::id);
  for (const NamedToken& token : tokens) {
    const bool is_language = languages.is_language(token.text);
    if (is_language || token.id >= 0) place(token, pieces.pieces, source.files.path());
    if (!is_language) continue;
    translation.languages.push_back(languages.code_of(token.text));
    translation.language_tokens.push_back(token.text);
  }
  if (translation.languages.empty())
    fail("{}: found no languages among added_tokens", source.files.path("tokenizer.json"));
  if (languages.mask && !pieces.library) place({-1, "<mask>"}, pieces.pieces, source.files.path());
}

ClassTokens fairseq_tokens() { return {{"<s>", "<pad>", "</s>", "<unk>", "<mask>"}, "<mask>"}; }

TokenizerPair spell_tokens(const TextSource& source, const TokenizerPair& tokenizers, ClassTokens special,
                           TranslationConfig& translation) {
  const auto spells = [](const Tokenizer& tokenizer) {  // others find them, or have tokens between spaces
    return tokenizer.own_pieces() && !tokenizer.serialized().empty();
  };
  if (!spells(tokenizers.source) || !spells(tokenizers.target)) return tokenizers;
  special.all.insert(special.all.end(), translation.language_tokens.begin(), translation.language_tokens.end());
  std::vector<std::string> pieces = *tokenizers.source.own_pieces();
  std::erase_if(pieces, [&](const std::string& piece) { return !tokenizers.target.id(piece); });
  SpelledTokens spelled = spelled_tokens(source.files, std::move(special.all), special.mask, pieces);
  translation.spelled = std::move(spelled.all);
  translation.strips_left = std::move(spelled.strips_left);
  translation.strips_right = std::move(spelled.strips_right);
  const auto with = [&](const Tokenizer& tokenizer) {
    return with_spelled(tokenizer, translation.spelled, translation.strips_left, translation.strips_right,
                        source.files.path());
  };
  return {with(tokenizers.source), with(tokenizers.target)};
}

ModelText share_pieces(const TextSource& source, const char* splitter, TranslatorPieces pieces,
                       TranslationConfig translation, ClassTokens special) {
  override_tokens(translation, source.options);
  const bool splits = source.options.tokens || !source.options.source_tokenizer.empty();
  const auto side = [&](bool is_source) {
    if (pieces.library && !splits) return Tokenizer::of_hugging_face(*pieces.library);
    const auto file = choose_splitter(is_source, source.options,
                                      [&] { return SentencePieceFile::read(source.files.path(splitter)); });
    return Tokenizer::with_pieces(file, pieces.pieces, translation.unknown, source.files.path());
  };
  const auto fitted = [&](const Tokenizer& tokenizer) {  // those of tokenizer.json are fitted by import_model
    if (tokenizer.hugging_face()) return tokenizer;
    return tokenizer.fitted(source.model.source_vocab, source.files.path());
  };
  TokenizerPair tokenizers =
      spell_tokens(source, {fitted(side(true)), fitted(side(false))}, std::move(special), translation);
  return TranslatorText{std::move(tokenizers), std::move(translation)};
}

}  // namespace qkv
