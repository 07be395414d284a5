// Text to the token ids of a language model and back, without loss: characters or bytes. The last id is the end of a
// document, which also stands before the first one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/language.h"
#include "text/vocabulary.h"

namespace qkv {

class TextCodec {
 public:
  TextCodec() = default;  // bytes

  // The characters of these texts, which are valid UTF-8, by code point.
  static TextCodec of_characters(std::span<const std::string_view> texts);
  // A list of characters. Throws Error, beginning with `where`, for a list that is no vocabulary (vocabulary.h).
  static TextCodec of_characters(std::vector<std::string> characters, const std::string& where);

  // Throws Error, beginning with `where`, for a character that is none of the vocabulary's.
  std::vector<int32_t> encode(std::string_view text, const std::string& where) const;
  // Throws Error for an id outside [0, size()). The end of a document gives nothing.
  std::string decode(std::span<const int32_t> ids) const;

  int32_t end() const { return characters_ ? characters_->size() : 256; }
  int32_t size() const { return end() + 1; }
  TextUnit unit() const { return characters_ ? TextUnit::characters : TextUnit::bytes; }
  const std::vector<std::string>& characters() const { return characters_->pieces(); }  // where these are the unit

 private:
  std::shared_ptr<const Vocabulary> characters_;  // null for bytes
};

}  // namespace qkv
