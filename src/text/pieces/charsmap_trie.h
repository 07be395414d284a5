// The units of the trie in a SentencePiece normalizer's table: a double array. charsmap_check.h has the format.
#pragma once

#include <cstdint>

namespace qkv {

// Returns the distance from a unit to its children: the child of a byte is at (place ^ offset) ^ byte.
inline uint32_t trie_offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
// Returns the byte of a unit. That of a value is never a byte.
inline uint32_t trie_label(uint32_t unit) { return unit & ((1u << 31) | 0xFF); }
// Returns whether a key ends at a unit.
inline bool trie_has_value(uint32_t unit) { return unit >> 8 & 1; }

}  // namespace qkv
