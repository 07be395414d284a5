// Converts between text and the search: splits lines into parts in token ids, and converts translated parts to results.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decode/generation/readable.h"
#include "decode/pipeline.h"
#include "decode/terms/glossary.h"
#include "decode/terms/protected_parts.h"
#include "io/runs/run_kinds.h"
#include "io/runs/sentence_lengths.h"
#include "io/runs/translation_config.h"
#include "text/text_sentences.h"

namespace qkv {

// The protected parts and the glossary of translations; null: none.
struct TermRules {
  std::shared_ptr<const ProtectedPartFinder> protected_parts = nullptr;
  std::shared_ptr<const Glossary> glossary = nullptr;
};

// A sentence of a line, with its options.
struct SentenceToTranslate {
  std::string_view text;
  std::vector<ProtectedPart> protected_parts;  // bytes of the text
  const SentenceEdges& edges;
  const TranslateOptions& options;
  const TermRules& rules;
  bool stays_whole = false;  // unless it is longer than max_length
};

// Tokens of parts and of their translations.
struct PartLengths {
  int64_t source = 0, target = 0;
  bool have_ended = true;  // rather than reached max_length

  void add(const LinePart& part, const Decoded& decoded) {
    source += part.source_tokens();
    target += std::ssize(decoded.ids);
    have_ended &= decoded.ended;
  }
};

class TranslationText {
 public:
  // max_length: maximum sequence length in tokens.
  TranslationText(const TranslatorRun& run, int64_t max_length);

  const TokenizerPair& tokenizers() const { return tokenizers_; }
  const TranslationTokens& tokens() const { return tokens_; }

  // Returns the text, in lower case if the run requires it. Throws Error unless it is valid UTF-8.
  std::string prepare(const std::string& text) const;
  // Throws Error for a prefix that is too long, not valid UTF-8, or has a character that the model reserves.
  void check_source_prefix(const std::string& prefix) const;
  // Returns what stands around a sentence. Throws Error for a language that the model does not have.
  SentenceEdges edges(const TranslateOptions& options) const {
    return edges_between(options.source_language, options.target_language, options.source_prefix);
  }
  // Returns the ids of a source with its prefix and special tokens, or nothing for a text of spaces.
  std::vector<int32_t> source_ids(std::string_view text, const SentenceEdges& edges) const;
  std::vector<int32_t> target_ids(std::string_view text) const { return tokenizers_.target.encode(text); }
  std::vector<int32_t> target_ids(const std::vector<std::string>& pieces) const;

  SearchOptions search_options(const TranslateOptions& options) const;

  // Returns the rules of the options. Throws Error for a pattern or a glossary that is not valid.
  TermRules term_rules(const TranslateOptions& options) const;

  // Splits a line into parts: its sentences, unless the options say otherwise, and parts of those that are too long.
  // Throws Error, naming the line.
  void read(Line& line, const TranslateOptions& options, const TermRules& rules) const;

  // Sets the clauses of a part whose translation is too short, unless the options say that lines stay whole.
  void find_clauses(LinePart& part, const TranslateOptions& options) const;

  // Returns the translation of a line, with its parts joined. Those that are too short are replaced by those of their
  // clauses, if these are not. Throws Error, naming the line, if the model's output is NaN.
  Translation result(Line& line, const TranslateOptions& options) const;

  // Returns the tokens of a part, and the protected parts that were taken out of it.
  std::vector<std::string> source_tokens(const LinePart& part) const;

  // Returns one hypothesis of a part.
  Hypothesis hypothesis(const LinePart& part, const Decoded& decoded, const Forced* forced,
                        const TranslateOptions& options) const;

  bool has_unknown(const Decoded& decoded) const;
  // Returns whether the alignment says where protected parts of a hypothesis are.
  bool needs_places(const LinePart& part, const Decoded& decoded) const;

 private:
  bool has_reserved(std::string_view text) const;
  // Throws Error, beginning with the option, if the text has a character that the model reserves.
  void refuse_reserved(std::string_view text, const char* option) const;
  SentenceEdges edges_between(const std::string& source_language, const std::string& target_language,
                              const std::string& source_prefix) const;
  void split(Line& line, const TranslateOptions& options, const TermRules& rules) const;
  void add_sentence(Line& line, const SentenceToTranslate& sentence) const;
  ReducedText reduced(const SentenceToTranslate& sentence) const;
  int64_t longest_source(const SentenceToTranslate& sentence) const;
  std::vector<LinePart> cut(const LinePart& whole, int64_t most_tokens) const;
  void add_inline_terms(LinePart& part) const;
  void require_terms(LinePart& part) const;
  TermSpellings spellings_of(std::string_view source, const GlossaryEntry& entry, size_t& room) const;
  std::shared_ptr<const Glossary> glossary_of(const std::string& text) const;
  void set_prefix(Line& line, const TranslateOptions& options) const;
  // Returns the tokens of the source without translations of terms.
  std::vector<int32_t> own_source(const LinePart& part) const;
  Hypothesis without_surplus(const LinePart& part, const Decoded& decoded, const Forced* forced,
                             const TranslateOptions& options) const;
  bool is_too_short(const PartLengths& lengths) const;
  bool has_whole_clauses(const LinePart& part) const;
  void use_clauses(Line& line) const;
  // Returns hypothesis k of a line. sources_before: the number of source tokens before each part, and of all.
  Hypothesis joined(const Line& line, size_t k, const std::vector<size_t>& sources_before,
                    const TranslateOptions& options) const;

  const TokenizerPair tokenizers_;
  const TranslationTokens tokens_;
  const SentenceSplitter splitter_;
  const int64_t max_length_;
  const std::optional<SentenceLengths> lengths_;
  std::unordered_map<std::string, int32_t> target_id_;  // id of each piece
  const std::vector<bool> continues_word_;              // of each piece of the target

  struct KeptGlossary {
    std::string text;
    std::shared_ptr<const Glossary> glossary;
  };
  mutable std::mutex glossary_mutex_;
  mutable std::deque<KeptGlossary> glossaries_;  // of the last calls, the last one first
};

}  // namespace qkv
