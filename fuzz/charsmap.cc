// A normalizer's table: a walk as darts-clone and SentencePiece make it, over a table that was accepted, stays inside.
#include "text/pieces/charsmap.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "fuzz/reader.h"

namespace {

struct WalkedTable {
  std::string_view trie, strings;

  uint32_t unit(uint32_t position) const {
    qkv::fuzz::require(position < trie.size() / 4, "a look-up stays inside the trie");
    uint32_t unit;
    std::memcpy(&unit, &trie[4 * size_t{position}], 4);
    return unit;
  }

  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

  // commonPrefixSearch of darts-clone.
  void walk(std::string_view key) const {
    int matches = 0;
    uint32_t position = offset(unit(0));
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      position ^= byte;
      const uint32_t found = unit(position);
      if ((found & ((1u << 31) | 0xFF)) != byte) return;
      position ^= offset(found);
      if ((found >> 8 & 1) == 0) continue;
      const uint32_t value = unit(position) & ~(1u << 31);
      qkv::fuzz::require(value < strings.size(), "a replacement is one of the strings");
      qkv::fuzz::require(strings.find('\0', value) != std::string_view::npos, "a replacement has an end");
      qkv::fuzz::require(++matches <= 32, "at most 32 keys begin alike");
    }
  }
};

}  // namespace

void qkv::fuzz::fuzz_charsmap(std::string_view bytes) {
  check_charsmap(bytes, "table");
  if (bytes.empty()) return;
  uint32_t size;
  std::memcpy(&size, bytes.data(), 4);
  const WalkedTable table{bytes.substr(4, size), bytes.substr(4 + size)};
  // Texts: every byte, 40 times, and what the table itself is made of.
  for (int byte = 0; byte < 256; byte++) table.walk(std::string(40, static_cast<char>(byte)));
  for (size_t begin = 0; begin < bytes.size(); begin += 16) table.walk(bytes.substr(begin));
}
