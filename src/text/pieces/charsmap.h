// The normalizer's table of a SentencePiece model: checks that every look-up stays inside it, and applies it as the
// library tokenizers does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// charsmap = size of the trie in bytes (uint32, little-endian), the trie, then replacement strings, each ended by a
// zero byte. The trie is a darts-clone double array of uint32 units: from position p with unit u, the children of p lie
// at (p ^ offset(u)) ^ byte, and a replacement's position, if bit 8 of u is set, at p ^ offset(u). Throws Error,
// beginning with `where`, if a walk over any text could leave the array or the strings, or matches more than 32 keys on
// the way (the room that SentencePiece has for them).
void check_charsmap(std::string_view charsmap, const std::string& where);

// Return the bytes of the longest key that a text begins with, 0 if there is none, and whether a key has this byte. The
// table has been checked.
size_t longest_key(std::string_view charsmap, std::string_view text);
bool has_byte(std::string_view charsmap, unsigned char byte);

// Applies a table.
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
// Returns the text in base 64 of these bytes.
std::string to_base64(std::string_view bytes);

}  // namespace qkv
