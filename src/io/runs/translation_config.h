// translation.json: how a translator reads and writes text. Tokens are spelled as in the vocabulary. Tags of languages
// may stand in the text itself, such as >>de<< of MarianMT models, in place of a parameter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace qkv {

struct TokenizerPair {
  Tokenizer source, target;
};

// The place of the token that names the language of the source:
//   none    there is no such token
//   before  before the sentence: mBART-50, M2M100, NLLB
//   after   after source_end: mBART
enum class SourceLanguage { none, before, after };
constexpr std::array<std::string_view, 3> names_of(SourceLanguage) { return {"none", "before", "after"}; }

// The place of the token that names the language of the target:
//   none    there is no such token
//   start   the decoder starts from it instead of `start`: mBART
//   first   it follows `start` and begins every translation: mBART-50, M2M100, NLLB
//   source  before the source sentence: MADLAD-400
enum class TargetLanguage { none, start, first, source };
constexpr std::array<std::string_view, 4> names_of(TargetLanguage) { return {"none", "start", "first", "source"}; }

struct TranslationConfig {
  bool lowercase = false;                // lower-case the text first
  std::string source_start, source_end;  // tokens around a source sentence; "": none
  std::string start = "<s>";             // token that the decoder starts from
  std::string first;               // token that follows `start` in every translation and is no part of it; "": none
  std::string end = "</s>";        // token that ends a translation
  std::string unknown = "<unk>";   // token for text that the vocabulary lacks; "": none
  std::vector<std::string> never;  // tokens that are never generated
  // With a list of pieces: tokens that a text may spell, and those of them that take the spaces before or after them.
  std::vector<std::string> spelled, strips_left, strips_right;
  int64_t min_length = 0;  // smallest number of tokens before the end token
  // The languages of a model with several: their codes ("en") and, in the same order, their tokens ("__en__").
  std::vector<std::string> languages, language_tokens;
  SourceLanguage source_language = SourceLanguage::none;
  TargetLanguage target_language = TargetLanguage::none;
  // Characters that stand for protected parts, and the two around the translation of a term in a source, if the model
  // was trained with them. Each is a token, of Unicode's private use area.
  std::vector<std::string> stand_ins = {}, term_marks = {};

  bool operator==(const TranslationConfig&) const = default;
};

template <class Visitor>
void visit_fields(TranslationConfig& c, Visitor&& visit) {
  visit("lowercase", c.lowercase, "Lower-case the text first");
  visit("source_start", c.source_start, "Token before a source sentence");
  visit("source_end", c.source_end, "Token after a source sentence");
  visit("start", c.start, "Token that the decoder starts from");
  visit("first", c.first, "Token that follows start in every translation");
  visit("end", c.end, "Token that ends a translation");
  visit("unknown", c.unknown, "Token for text that the vocabulary lacks");
  visit("never", c.never, "Tokens that are never generated");
  visit("spelled", c.spelled, "Tokens that a text may spell");
  visit("strips_left", c.strips_left, "Those of them that take the spaces before them");
  visit("strips_right", c.strips_right, "Those of them that take the spaces after them");
  visit("min_length", c.min_length, "Smallest number of tokens before the end token");
  visit("languages", c.languages, "Codes of the languages");
  visit("language_tokens", c.language_tokens, "Tokens of the languages");
  visit("source_language", c.source_language, "Place of the token of the source's language");
  visit("target_language", c.target_language, "Place of the token of the target's language");
  visit("stand_ins", c.stand_ins, "Characters that stand for protected parts");
  visit("term_marks", c.term_marks, "Characters around the translation of a term in a source");
}

// A character that stands for a protected part, and its token of each side.
struct StandIn {
  std::string text;
  int32_t source = 0, target = 0;
};

// The characters before and after the translation of a term in a source, and their tokens.
struct TermMarks {
  std::string before, after;
  int32_t before_token = 0, after_token = 0;
};

// The same with tokens as ids: of the source vocabulary around a source sentence, of the target vocabulary otherwise.
struct TranslationTokens {
  bool lowercase = false;
  std::vector<int32_t> source_before, source_after;
  int32_t start = 0, end = 0;
  int32_t unknown = -1;  // −1: none
  std::vector<int32_t> never;
  int64_t min_length = 0;
  std::vector<int32_t> first = {};  // none or one
  struct Language {
    std::string code, token;
    int32_t source = -1, target = -1;  // ids of the token; −1 on a side that does not use it
  };
  std::vector<Language> languages = {};
  SourceLanguage source_language = SourceLanguage::none;
  TargetLanguage target_language = TargetLanguage::none;
  std::vector<StandIn> stand_ins = {};
  std::optional<TermMarks> term_marks = {};
  std::vector<std::string> reserved = {};  // characters of both
};

// The tokens around a source sentence, and those that the decoder starts from.
struct SentenceEdges {
  std::vector<int32_t> before, after, start;
  std::string prefix = {};    // text before the sentence, which is tokenized with it
  int64_t prefix_tokens = 0;  // of the prefix alone
};

// Returns the edges for two languages, given by their codes or tokens; "" means none. Throws Error, listing the codes,
// for a language that is unknown, is missing although the model needs it, or is given although the model has no place
// for it.
SentenceEdges edges_of(const TranslationTokens& tokens, const std::string& source_language,
                       const std::string& target_language);

// Looks up the tokens. Throws Error, beginning with `where` and naming field and token, if a vocabulary lacks one, if
// min_length is negative, if the languages contradict each other, or if a stand-in or a term mark is not a single
// character of a private use area, or not a token.
TranslationTokens tokens_of(const TranslationConfig& config, const TokenizerPair& tokenizers, const std::string& where);

// Returns the ids of the target vocabulary that are no text: the special tokens of a tokenizer.json, and in a model
// with several languages, the languages' tokens, <pad> and <mask>.
std::vector<int32_t> ids_without_text(const TranslationConfig& config, const Tokenizer& target);

// Returns the configuration of a model trained here: SentencePiece's start, end and unknown tokens.
TranslationConfig trained_translation(const TokenizerPair& tokenizers, bool lowercase);
// Adds stand-ins and term marks (stand_in_characters.h) to the configuration of a model that is trained with them.
void add_stand_ins(TranslationConfig& config);
void add_term_marks(TranslationConfig& config, const Tokenizer& target);

// Throws Error, naming tags, if `language` is given and the vocabulary of the source has pieces such as >>de<<, by
// which a text states the language of its translation.
void refuse_tagged_language(const Tokenizer& source, const std::string& language);

}  // namespace qkv
