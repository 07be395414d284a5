// SentencePiece models made by hand: the protobuf wire format, just enough to write one, and a normalizer's table.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace qkv::testing::spm {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string little_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

inline std::string field(uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

// type: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
inline std::string piece(const std::string& text, int type = 1, float score = 0) {
  return field(1, field(1, text) + varint(2 << 3 | 5) + little_endian(std::bit_cast<uint32_t>(score)) + varint(3 << 3) +
                      varint(static_cast<uint64_t>(type)));
}

inline const std::string kControl = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3);

inline std::string with_pieces(const std::string& pieces) { return kControl + pieces + field(2, "") + field(3, ""); }

inline std::string with_charsmap(const std::string& charsmap) {
  return kControl + piece("a") + field(2, "") + field(3, field(2, charsmap));
}

// A darts-clone trie: unit 0 leads to the children of the root at 256 ^ byte.
struct Trie {
  static constexpr uint32_t kNone = 1u << 31;  // no byte's unit; as a value, the replacement at byte 0

  std::vector<uint32_t> units = std::vector<uint32_t>(512, kNone);
  Trie() { units[0] = 256 << 10; }

  // "b" is replaced by the first of the strings: its value is unit 257.
  static Trie of_one_key() {
    Trie trie;
    trie.units[256 ^ 'b'] = 'b' | 1 << 8 | (('b' ^ 1) << 10);
    return trie;
  }
  // The keys b, bb, bbb, …: node n has its children in block n, its value at byte 1.
  static Trie of_repeated_keys(uint32_t keys) {
    Trie trie;
    trie.units.assign(256 * 40, kNone);
    trie.units[0] = 256u << 10;
    for (uint32_t n = 1; n <= keys; n++) {
      const uint32_t at = n * 256 ^ 'b', base = (n + 1) * 256;
      trie.units[at] = 'b' | 1 << 8 | (at ^ base) << 10;
    }
    return trie;
  }

  std::string charsmap(const std::string& strings = std::string("x\0", 2)) const {
    std::string bytes = little_endian(static_cast<uint32_t>(units.size() * 4));
    for (const uint32_t unit : units) bytes += little_endian(unit);
    return bytes + strings;
  }
};

}  // namespace qkv::testing::spm
