// translation.json: how a translator reads and writes text. Tokens are spelled as in the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace qkv {

struct TokenizerPair {
  Tokenizer source, target;
};

struct TranslationConfig {
  bool lowercase = false;                // lower-case the text first
  std::string source_start, source_end;  // tokens around a source sentence; "": none
  std::string start = "<s>";             // token that the decoder starts from
  std::string end = "</s>";              // token that ends a translation
  std::string unknown = "<unk>";         // token for text that the vocabulary lacks; "": none
  std::vector<std::string> never;        // tokens that are never generated
  int64_t min_length = 0;                // smallest number of tokens before the end token

  bool operator==(const TranslationConfig&) const = default;
};

template <class Visitor>
void visit_fields(TranslationConfig& c, Visitor&& visit) {
  visit("lowercase", c.lowercase, "Lower-case the text first");
  visit("source_start", c.source_start, "Token before a source sentence");
  visit("source_end", c.source_end, "Token after a source sentence");
  visit("start", c.start, "Token that the decoder starts from");
  visit("end", c.end, "Token that ends a translation");
  visit("unknown", c.unknown, "Token for text that the vocabulary lacks");
  visit("never", c.never, "Tokens that are never generated");
  visit("min_length", c.min_length, "Smallest number of tokens before the end token");
}

// The same with tokens as ids: of the source vocabulary around a source sentence, of the target vocabulary otherwise.
struct TranslationTokens {
  bool lowercase = false;
  std::vector<int32_t> source_before, source_after;
  int32_t start = 0, end = 0;
  int32_t unknown = -1;  // −1: none
  std::vector<int32_t> never;
  int64_t min_length = 0;
};

// Looks up the tokens. Throws Error, beginning with `where` and naming field and token, if a vocabulary lacks one or if
// min_length is negative.
TranslationTokens tokens_of(const TranslationConfig& config, const TokenizerPair& tokenizers, const std::string& where);

// Returns the configuration of a model trained here: SentencePiece's start, end and unknown tokens.
TranslationConfig trained_translation(const TokenizerPair& tokenizers, bool lowercase);

}  // namespace qkv
