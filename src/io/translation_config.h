// translation.json: what turning text into a translation needs besides the model and its tokenisers. Tokens are written
// as the vocabulary spells them.
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
  bool lowercase = false;                // the text, before anything else
  std::string source_start, source_end;  // tokens around a source sentence; "": none
  std::string start = "<s>";             // the token that the decoder starts from
  std::string end = "</s>";              // ends a translation
  std::string unknown = "<unk>";         // of both sides; "": none
  std::vector<std::string> never;        // tokens that no translation holds
  int64_t min_length = 0;                // tokens before the end token

  bool operator==(const TranslationConfig&) const = default;
};

template <class Visitor>
void visit_fields(TranslationConfig& c, Visitor&& visit) {
  visit("lowercase", c.lowercase, "lower-case the text first");
  visit("source_start", c.source_start, "token before a source sentence");
  visit("source_end", c.source_end, "token after a source sentence");
  visit("start", c.start, "token that the decoder starts from");
  visit("end", c.end, "token that ends a translation");
  visit("unknown", c.unknown, "token for what is not in the vocabulary");
  visit("never", c.never, "tokens that no translation holds");
  visit("min_length", c.min_length, "tokens before the end token");
}

// The same as ids, of the source's vocabulary for what stands around a source sentence, else of the target's.
struct TranslationTokens {
  bool lowercase = false;
  std::vector<int32_t> source_before, source_after;
  int32_t start = 0, end = 0;
  int32_t unknown = -1;  // −1: none
  std::vector<int32_t> never;
  int64_t min_length = 0;
};

// Throws Error, beginning with `where` and naming field and token, where a vocabulary lacks one, and for a min_length
// below 0.
TranslationTokens tokens_of(const TranslationConfig& config, const TokenizerPair& tokenizers, const std::string& where);

// That of a model trained here: SentencePiece's start, end and unknown tokens.
TranslationConfig trained_translation(const TokenizerPair& tokenizers, bool lowercase);

}  // namespace qkv
