// The normalizer's table of a SentencePiece model, as the library tokenizers applies it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// See charsmap_check.h for the format.
class Charsmap {
 public:
  // Throws Error, beginning with `where`, for a table that is broken.
  Charsmap(std::string_view table, const std::string& where);

  // Returns a text of valid UTF-8 with its characters replaced. A grapheme cluster of fewer than six bytes is looked up
  // first, and then each of its code points. The shortest key that begins it counts.
  std::string apply(std::string_view text) const;

 private:
  bool replace(std::string_view characters, std::string& result) const;

  std::vector<uint32_t> units_;  // of the trie
  std::string replacements_;     // each ends with a zero byte
};

// Returns the bytes of a text in base 64. Throws Error, beginning with `where`, for a text that is none.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace qkv
