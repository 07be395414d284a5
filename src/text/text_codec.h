// Text to the token ids of a language model and back: characters or bytes, without loss, or SentencePiece's pieces. A
// token of its own stands at the end of a document and, in text to learn from, before the first one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/language.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace qkv {

class TextCodec {
 public:
  TextCodec() = default;  // bytes

  // The characters of these texts, which are valid UTF-8, by code point.
  static TextCodec of_characters(std::span<const std::string_view> texts);
  // A list of characters. Throws Error, beginning with `where`, for a list that is no vocabulary (vocabulary.h).
  static TextCodec of_characters(std::vector<std::string> characters, const std::string& where);

  static TextCodec of_pieces(Tokenizer tokenizer);  // SentencePiece's

  // Throws Error, beginning with `where`, for a character that is none of the vocabulary's.
  std::vector<int32_t> encode(std::string_view text, const std::string& where) const;
  // Throws Error for an id outside [0, size()). The end of a document gives nothing. first: whether they begin a text;
  // a space before the first word of one is none of it, where the tokeniser puts it there.
  std::string decode(std::span<const int32_t> ids, bool first = true) const;

  int32_t end() const { return tokenizer_ ? tokenizer_->end() : characters_ ? characters_->size() : 256; }
  int32_t size() const { return tokenizer_ ? tokenizer_->size() : end() + 1; }
  TextUnit unit() const { return tokenizer_ ? TextUnit::pieces : characters_ ? TextUnit::characters : TextUnit::bytes; }
  const std::vector<std::string>& characters() const { return characters_->pieces(); }  // where these are the unit
  const Tokenizer& tokenizer() const { return *tokenizer_; }                            // where pieces are

 private:
  std::shared_ptr<const Vocabulary> characters_;  // null for bytes
  std::optional<Tokenizer> tokenizer_;            // of pieces
};

}  // namespace qkv
