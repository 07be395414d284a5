#include "io/runs/translation_config.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/fail.h"
#include "core/json.h"
#include "text/sentence_characters.h"
#include "text/stand_in_characters.h"

namespace qkv {
namespace {

int32_t id_of(const Tokenizer& tokenizer, const std::string& piece, const char* field, const std::string& where) {
  const auto id = tokenizer.id(piece);
  if (!id) fail("{}: {} is {}, which is not in the vocabulary", where, field, excerpt(piece));
  return *id;
}

void read_languages(const TranslationConfig& config, const TokenizerPair& tokenizers, const std::string& where,
                    TranslationTokens& tokens) {
  const size_t count = config.languages.size();
  if (config.language_tokens.size() != count)
    fail("{}: language_tokens must have {} tokens, one for each of languages (has {})", where, count,
         config.language_tokens.size());
  tokens.source_language = config.source_language, tokens.target_language = config.target_language;
  const bool first = config.target_language == TargetLanguage::first;
  if (first && !config.first.empty())
    fail("{}: first must be empty if target_language is first (is {})", where, excerpt(config.first));
  const bool in_source =
      config.source_language != SourceLanguage::none || config.target_language == TargetLanguage::source;
  const bool in_target = first || config.target_language == TargetLanguage::start;
  if ((in_source || in_target) != (count > 0))
    fail("{}: languages must be {} (has {})", where,
         count == 0 ? "there if source_language or target_language is not none"
                    : "empty if source_language and target_language are none",
         count);
  for (size_t i = 0; i < count; i++) {
    const std::string &code = config.languages[i], &token = config.language_tokens[i];
    if (code.empty() ||
        std::ranges::find(tokens.languages, code, &TranslationTokens::Language::code) != tokens.languages.end())
      fail("{}: languages must be different codes (holds {} {})", where, code.empty() ? "the empty text" : "twice",
           excerpt(code));
    TranslationTokens::Language language{code, token};
    if (in_source) language.source = id_of(tokenizers.source, token, "language_tokens", where);
    if (in_target) language.target = id_of(tokenizers.target, token, "language_tokens", where);
    tokens.languages.push_back(std::move(language));
  }
}

// Returns the language of one side, or null if the model has no place for it.
const TranslationTokens::Language* find_language(const TranslationTokens& tokens, bool has_place, const char* parameter,
                                                 const std::string& name) {
  if (!has_place) {
    if (!name.empty()) fail("{} must be empty, because the model does not read it (is {})", parameter, excerpt(name));
    return nullptr;
  }
  for (const TranslationTokens::Language& language : tokens.languages)
    if (name == language.code) return &language;
  for (const TranslationTokens::Language& language : tokens.languages)
    if (name == language.token) return &language;
  std::vector<std::string> codes;
  for (const TranslationTokens::Language& language : tokens.languages) codes.push_back(language.code);
  fail("{} must be one of {} (is {})", parameter, fmt::join(codes, ", "), name.empty() ? "missing" : excerpt(name));
}

constexpr size_t kMostStandIns = 64;

// Returns the token of a reserved character of one side.
int32_t reserved_id(const Tokenizer& tokenizer, const std::string& text, const char* field, const std::string& where) {
  const int32_t id = id_of(tokenizer, text, field, where);
  const std::vector<int32_t> encoded = tokenizer.encode(text);
  if (std::ranges::find(encoded, id) == encoded.end())
    fail("{}: {} holds {}, which the tokenizer divides or leaves out", where, field, excerpt(text));
  return id;
}

void read_reserved(const TranslationConfig& config, const TokenizerPair& tokenizers, const std::string& where,
                   TranslationTokens& tokens) {
  if (config.stand_ins.size() > kMostStandIns)
    fail("{}: stand_ins must have at most {} characters (has {})", where, kMostStandIns, config.stand_ins.size());
  if (!config.term_marks.empty() && config.term_marks.size() != 2)
    fail("{}: term_marks must have two characters or none (has {})", where, config.term_marks.size());
  for (const auto& [field, characters] :
       {std::pair{"stand_ins", &config.stand_ins}, std::pair{"term_marks", &config.term_marks}})
    for (const std::string& text : *characters) {
      const sentence::Character first = sentence::character_at(text, 0);
      if (first.end != text.size() || u_charType(first.code) != U_PRIVATE_USE_CHAR)
        fail("{}: {} must have single characters of a private use area (holds {})", where, field, excerpt(text));
      if (std::ranges::find(tokens.reserved, text) != tokens.reserved.end())
        fail("{}: {} holds {}, which is there twice", where, field, excerpt(text));
      tokens.reserved.push_back(text);
    }
  for (const std::string& text : config.stand_ins)
    tokens.stand_ins.push_back({text, reserved_id(tokenizers.source, text, "stand_ins", where),
                                reserved_id(tokenizers.target, text, "stand_ins", where)});
  if (config.term_marks.empty()) return;
  const std::string &before = config.term_marks.front(), &after = config.term_marks.back();
  tokens.term_marks = TermMarks{before, after, reserved_id(tokenizers.source, before, "term_marks", where),
                                reserved_id(tokenizers.source, after, "term_marks", where)};
}

constexpr size_t kMostNamed = 8;

bool is_tag(const std::string& piece) { return piece.size() > 4 && piece.starts_with(">>") && piece.ends_with("<<"); }

}  // namespace

TranslationTokens tokens_of(const TranslationConfig& config, const TokenizerPair& tokenizers,
                            const std::string& where) {
  const auto& [source, target] = tokenizers;
  TranslationTokens tokens;
  tokens.lowercase = config.lowercase;
  if (!config.source_start.empty()) tokens.source_before = {id_of(source, config.source_start, "source_start", where)};
  if (!config.source_end.empty()) tokens.source_after = {id_of(source, config.source_end, "source_end", where)};
  tokens.start = id_of(target, config.start, "start", where);
  tokens.end = id_of(target, config.end, "end", where);
  if (!config.unknown.empty()) tokens.unknown = id_of(target, config.unknown, "unknown", where);
  for (const std::string& piece : config.never) tokens.never.push_back(id_of(target, piece, "never", where));
  tokens.min_length = config.min_length;
  if (tokens.min_length < 0) fail("{}: min_length must be at least 0 (is {})", where, tokens.min_length);
  if (!config.first.empty()) tokens.first = {id_of(target, config.first, "first", where)};
  read_languages(config, tokenizers, where, tokens);
  read_reserved(config, tokenizers, where, tokens);
  return tokens;
}

std::vector<int32_t> ids_without_text(const TranslationConfig& config, const Tokenizer& target) {
  std::vector<int32_t> ids;
  if (target.hugging_face()) ids = target.hugging_face()->special_ids();
  for (int32_t id = 0; id < target.size(); id++) {
    const std::string& piece = target.piece(id);
    // T5's sentinels, and rows without a piece as imports once named them.
    if (piece.starts_with("<extra_id_") || (piece.starts_with("<unused_") && piece == fmt::format("<unused_{}>", id)))
      ids.push_back(id);
  }
  if (config.languages.empty()) return ids;
  std::vector<std::string> pieces = config.language_tokens;
  for (const char* name : {"<pad>", "<mask>"}) pieces.push_back(name);
  for (const std::string& piece : pieces)
    if (const auto id = target.id(piece)) ids.push_back(*id);
  return ids;
}

TranslationConfig trained_translation(const TokenizerPair& tokenizers, bool lowercase) {
  const auto& [source, target] = tokenizers;
  TranslationConfig config;
  config.lowercase = lowercase;
  config.source_end = source.piece(source.end());
  config.start = target.piece(target.start());
  config.end = target.piece(target.end());
  config.unknown = target.piece(target.unknown());
  return config;
}

void add_stand_ins(TranslationConfig& config) { config.stand_ins = {kStandIns.begin(), kStandIns.end()}; }

void add_term_marks(TranslationConfig& config, const Tokenizer& target) {
  config.term_marks = {kTermMarks.begin(), kTermMarks.end()};
  std::ranges::copy_if(config.term_marks, std::back_inserter(config.never),
                       [&](const std::string& mark) { return target.id(mark).has_value(); });
}

SentenceEdges edges_of(const TranslationTokens& tokens, const std::string& source_language,
                       const std::string& target_language) {
  SentenceEdges edges{tokens.source_before, tokens.source_after, {tokens.start}};
  edges.start.insert(edges.start.end(), tokens.first.begin(), tokens.first.end());
  const TargetLanguage place = tokens.target_language;
  const auto* from =
      find_language(tokens, tokens.source_language != SourceLanguage::none, "source_language", source_language);
  const auto* to = find_language(tokens, place != TargetLanguage::none, "target_language", target_language);
  if (to && place == TargetLanguage::source) edges.before.push_back(to->source);
  if (to && place == TargetLanguage::start) edges.start.front() = to->target;
  if (to && place == TargetLanguage::first) edges.start.push_back(to->target);
  if (from) (tokens.source_language == SourceLanguage::before ? edges.before : edges.after).push_back(from->source);
  return edges;
}

void refuse_tagged_language(const Tokenizer& source, const std::string& language) {
  if (language.empty()) return;
  const std::string own = is_tag(language) ? language : fmt::format(">>{}<<", language);
  std::vector<std::string> tags;
  bool has_own = false;
  for (int32_t id = 0; id < source.size(); id++) {
    const std::string piece = source.piece(id);
    if (!is_tag(piece)) continue;
    has_own |= piece == own;
    if (tags.size() < kMostNamed) tags.push_back(piece);
  }
  if (has_own)
    fail("target_language must be empty (is {}): this model reads a tag of the text; begin each text with {}",
         excerpt(language), own);
  if (!tags.empty())
    fail(
        "target_language must be empty (is {}): this model reads a tag of the text; begin each text with one of its "
        "tags, such as {}",
        excerpt(language), fmt::join(tags, ", "));
}

}  // namespace qkv
