// Text to the token ids of a language model and back: characters or bytes, without loss, SentencePiece's pieces, or
// those of a tokenizer.json. A token of its own stands at the end of a document and, in text to learn from, before the
// first one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qkv/language.h"
#include "text/pieces/vocabulary.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json/hugging_face_tokenizer.h"

namespace qkv {

constexpr bool has_tokenizer_json(TextUnit unit) {
  return unit == TextUnit::byte_pieces || unit == TextUnit::word_pieces;
}

class TextCodec {
 public:
  TextCodec() = default;  // bytes

  // The characters of these texts, which are valid UTF-8, by code point.
  static TextCodec of_characters(std::span<const std::string_view> texts);
  // A list of characters. Throws Error, beginning with `where`, for a list that is no vocabulary (vocabulary.h).
  static TextCodec of_characters(std::vector<std::string> characters, const std::string& where);

  static TextCodec of_pieces(Tokenizer tokenizer);  // SentencePiece's
  // For byte pieces or word pieces.
  static TextCodec of_tokenizer(HuggingFaceTokenizer tokenizer);

  // For pieces of all kinds: a model may have more tokens than its tokenizer; those behind have no text. Throws Error,
  // beginning with `where`, if it has fewer.
  void pad(int64_t size, const std::string& where);
  // The same, but the last added tokens of a tokenizer.json may be left out: those that the model has no row for.
  void fit(int64_t size, const std::string& where);

  // Throws Error, beginning with `where`, for a character outside the vocabulary. The spelling of an added token
  // of a tokenizer.json, such as "<|im_end|>", or of a control token of SentencePiece, such as "</s>", becomes it.
  std::vector<int32_t> encode(std::string_view text, const std::string& where) const;
  // The same, but the spelling of such a token is ordinary text.
  std::vector<int32_t> encode_plain(std::string_view text, const std::string& where) const;
  // Throws Error for an id outside [0, size()). The end of a document gives nothing. first: whether they begin a text;
  // a space before its first word is not part of it if the tokenizer adds one there.
  std::string decode(std::span<const int32_t> ids, bool first = true) const;

  // Tokens that a tokenizer.json puts around a text ([CLS] and [SEP]); its end() is `after`, or −1 if there is none.
  std::optional<int32_t> before() const;
  std::optional<int32_t> after() const;

  int32_t end() const;
  int32_t size() const;
  TextUnit unit() const;
  // For pieces of all kinds: the id of one as the vocabulary spells it, and its spelling, "" of one without text.
  // Throws Error for an id outside [0, size()).
  std::optional<int32_t> id(std::string_view piece) const;
  std::string piece(int32_t id) const;

  const std::vector<std::string>& characters() const;          // where these are the unit
  const Tokenizer& tokenizer() const;                          // where pieces are
  const HuggingFaceTokenizer& hugging_face_tokenizer() const;  // where byte pieces or word pieces are

 private:
  struct Bytes {};
  using Characters = std::shared_ptr<const Vocabulary>;

  std::variant<Bytes, Characters, Tokenizer, HuggingFaceTokenizer> kind_;
  int32_t own_size() const;  // without the padding

  int32_t padding_ = 0;  // tokens behind the tokenizer's
};

}  // namespace qkv
