#include "text/pieces/charsmap_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "core/fail.h"
#include "text/pieces/charsmap_trie.h"

namespace qkv {
namespace {

constexpr size_t kMaxCharsmapBytes = size_t{16} << 20;
constexpr int kMaxMatches = 32, kMaxDepth = 256;

// Returns a unit of the trie of a table that has been checked.
uint32_t unit_of(std::string_view charsmap, uint32_t position) {
  uint32_t unit = 0;
  std::memcpy(&unit, charsmap.data() + 4 + size_t{4} * position, 4);
  return unit;
}

class TrieCheck {
 public:
  TrieCheck(std::string_view trie, size_t strings, const std::string& where)
      : units_(trie.size() / 4), matches_(units_.size(), -1), strings_(strings), where_(where) {
    std::memcpy(units_.data(), trie.data(), units_.size() * 4);
  }

  void run() { longest(trie_offset(units_[0]), 0); }

 private:
  // The most keys that one text can match below the node whose children lie at base ^ byte.
  int longest(uint32_t base, int depth) {
    if ((base | 0xFF) >= units_.size())
      fail("{}: normalizer's table: position {} of {} units", where_, base | 0xFF, units_.size());
    if (matches_[base] >= 0) return matches_[base];
    if (depth > kMaxDepth) fail("{}: normalizer's table: a key of over {} bytes, or an endless one", where_, kMaxDepth);
    int most = 0;
    for (uint32_t byte = 0; byte < 256; byte++) {
      const uint32_t unit = units_[base ^ byte];
      if (trie_label(unit) != byte) continue;
      const uint32_t next = (base ^ byte) ^ trie_offset(unit);
      const int below = longest(next, depth + 1);
      if (trie_has_value(unit)) check_value(units_[next] & ~(1u << 31));
      most = std::max(most, below + trie_has_value(unit));
    }
    if (most > kMaxMatches) fail("{}: normalizer's table: over {} keys begin alike", where_, kMaxMatches);
    matches_[base] = static_cast<int8_t>(most);
    return most;
  }

  void check_value(uint32_t position) const {
    if (position >= strings_) fail("{}: normalizer's table: replacement at byte {} of {}", where_, position, strings_);
  }

  std::vector<uint32_t> units_;
  std::vector<int8_t> matches_;  // what longest() found for a base; −1 not yet
  size_t strings_;               // bytes
  const std::string& where_;
};

}  // namespace

void check_charsmap(std::string_view charsmap, const std::string& where) {
  if (charsmap.empty()) return;
  if (charsmap.size() > kMaxCharsmapBytes)
    fail("{}: normalizer's table: {} bytes, expected at most {}", where, charsmap.size(), kMaxCharsmapBytes);
  if (charsmap.size() < 4) fail("{}: normalizer's table: {} bytes, expected a size", where, charsmap.size());
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(charsmap[i])); };
  const size_t trie_size = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  charsmap.remove_prefix(4);
  if (trie_size >= charsmap.size() || trie_size == 0 || trie_size % 4 != 0)
    fail("{}: normalizer's table: a trie of {} bytes, expected a multiple of 4 below {}", where, trie_size,
         charsmap.size());
  if (charsmap.back() != '\0') fail("{}: normalizer's table: the last replacement has no end", where);
  TrieCheck(charsmap.substr(0, trie_size), charsmap.size() - trie_size, where).run();
}

size_t longest_key(std::string_view charsmap, std::string_view text) {
  if (charsmap.empty()) return 0;
  uint32_t base = trie_offset(unit_of(charsmap, 0));
  size_t longest = 0;
  for (size_t i = 0; i < text.size(); i++) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const uint32_t unit = unit_of(charsmap, base ^ byte);
    if (trie_label(unit) != byte) break;
    if (trie_has_value(unit)) longest = i + 1;
    base = (base ^ byte) ^ trie_offset(unit);
  }
  return longest;
}

bool has_byte(std::string_view charsmap, unsigned char wanted) {
  if (charsmap.empty()) return false;
  std::vector<uint32_t> open = {trie_offset(unit_of(charsmap, 0))};
  std::set<uint32_t> seen(open.begin(), open.end());
  while (!open.empty()) {
    const uint32_t base = open.back();
    open.pop_back();
    for (uint32_t byte = 0; byte < 256; byte++) {
      const uint32_t unit = unit_of(charsmap, base ^ byte);
      if (trie_label(unit) != byte) continue;
      if (byte == wanted) return true;
      const uint32_t next = (base ^ byte) ^ trie_offset(unit);
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return false;
}

}  // namespace qkv
