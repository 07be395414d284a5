// The normalizer's table of a SentencePiece model: does every look-up stay inside it?
#pragma once

#include <string>
#include <string_view>

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

}  // namespace qkv
