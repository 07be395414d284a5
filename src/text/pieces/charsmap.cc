#include "text/pieces/charsmap.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "text/tokenizer_json/text_pattern.h"

namespace qkv {
namespace {

// The units of the trie in a SentencePiece normalizer's table: a double array, as check_charsmap describes it.

// Returns the distance from a unit to its children: the child of a byte is at (place ^ offset) ^ byte.
inline uint32_t trie_offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

// Returns the byte of a unit. That of a value is never a byte.
inline uint32_t trie_label(uint32_t unit) { return unit & ((1u << 31) | 0xFF); }

// Returns whether a key ends at a unit.
inline bool trie_has_value(uint32_t unit) { return unit >> 8 & 1; }

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
      : units_(trie.size() / 4),
        matches_(units_.size(), -1),
        first_(units_.size(), kNone),
        next_(units_.size(), kNone),
        strings_(strings),
        where_(where) {
    std::memcpy(units_.data(), trie.data(), units_.size() * 4);
    for (size_t i = units_.size(); i-- > 0;) {
      const auto unit = static_cast<uint32_t>(i);
      const uint32_t byte = trie_label(units_[unit]), base = unit ^ byte;
      if (byte < 256 && base < units_.size()) next_[unit] = std::exchange(first_[base], unit);
    }
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
    for (uint32_t child = first_[base]; child != kNone; child = next_[child]) {
      const uint32_t unit = units_[child], below_child = child ^ trie_offset(unit);
      const int below = longest(below_child, depth + 1);
      if (trie_has_value(unit)) check_value(units_[below_child] & ~(1u << 31));
      most = std::max(most, below + trie_has_value(unit));
    }
    if (most > kMaxMatches) fail("{}: normalizer's table: over {} keys begin alike", where_, kMaxMatches);
    matches_[base] = static_cast<int8_t>(most);
    return most;
  }

  void check_value(uint32_t position) const {
    if (position >= strings_) fail("{}: normalizer's table: replacement at byte {} of {}", where_, position, strings_);
  }

  static constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> units_;
  std::vector<int8_t> matches_;         // what longest() found for a base; −1 not yet
  std::vector<uint32_t> first_, next_;  // the first child of a base, and the next child of its base
  size_t strings_;                      // bytes
  const std::string& where_;
};

constexpr size_t kLongestCluster = 5;  // bytes of a cluster that is looked up as a whole

int break_property(UChar32 c) { return u_getIntPropertyValue(c, UCHAR_GRAPHEME_CLUSTER_BREAK); }

bool is_extension(int property) {
  return property == U_GCB_EXTEND || property == U_GCB_ZWJ || property == U_GCB_SPACING_MARK;
}
bool breaks_cluster(int property) { return property == U_GCB_CONTROL || property == U_GCB_CR || property == U_GCB_LF; }

// The end of the grapheme cluster at a place. Syllables of Hangul, flags and joined emoji, all of which are too long to
// be looked up, are cut into their code points and marks.
size_t cluster_end(std::string_view text, size_t place) {
  const auto length = static_cast<int64_t>(text.size());
  auto i = static_cast<int64_t>(place);
  UChar32 c;
  U8_NEXT_OR_FFFD(text.data(), i, length, c);
  if (c == '\r') return to_size(i) + (i < length && text[to_size(i)] == '\n');
  if (c < 0x80 && (i == length || static_cast<unsigned char>(text[to_size(i)]) < 0x80)) return to_size(i);
  int before = break_property(c);
  while (i < length && !breaks_cluster(before)) {
    int64_t end = i;
    U8_NEXT_OR_FFFD(text.data(), end, length, c);
    const int property = break_property(c);
    if (!is_extension(property) && (before != U_GCB_PREPEND || breaks_cluster(property))) break;
    before = property;
    i = end;
  }
  return to_size(i);
}

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

Charsmap::Charsmap(std::string_view table, const std::string& where) {
  check_charsmap(table, where);
  if (table.empty()) return;
  uint32_t trie = 0;
  for (size_t i = 0; i < 4; i++) trie |= static_cast<uint32_t>(static_cast<unsigned char>(table[i])) << (8 * i);
  units_.resize(trie / 4);
  std::memcpy(units_.data(), table.data() + 4, trie);
  replacements_ = table.substr(4 + size_t{trie});
}

bool Charsmap::replace(std::string_view characters, std::string& result) const {
  uint32_t at = trie_offset(units_[0]);
  for (const char c : characters) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return false;
    const uint32_t unit = units_[at ^ byte];
    if (trie_label(unit) != byte) return false;
    at = (at ^ byte) ^ trie_offset(unit);
    if (!trie_has_value(unit)) continue;
    result += replacements_.c_str() + (units_[at] & ~(1u << 31));
    return true;
  }
  return false;
}

std::string Charsmap::apply(std::string_view text) const {
  if (units_.empty()) return std::string(text);
  std::string result;
  result.reserve(text.size());
  for (size_t place = 0; place < text.size();) {
    const size_t end = cluster_end(text, place);
    const std::string_view cluster = text.substr(place, end - place);
    place = end;
    check_growth(text.size(), result.size());
    if (cluster.size() <= kLongestCluster && replace(cluster, result)) continue;
    const auto length = static_cast<int64_t>(cluster.size());
    for (int64_t i = 0; i < length;) {
      const auto begin = to_size(i);
      U8_FWD_1(cluster.data(), i, length);
      const std::string_view character = cluster.substr(begin, to_size(i) - begin);
      if (!replace(character, result)) result += character;
    }
  }
  return result;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(bytes.size() - i, 3);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; k++) bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; k++) text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string from_base64(std::string_view text, const std::string& where) {
  std::array<int, 256> value;
  value.fill(-1);
  for (size_t i = 0; i < kDigits.size(); i++) value[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  const size_t end = text.find_last_not_of('=') + 1;
  if (text.size() % 4 != 0 || text.size() - end > 2) fail("{}: not base 64", where);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, end)) {
    const int digit = value[static_cast<unsigned char>(c)];
    if (digit < 0) fail("{}: not base 64", where);
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
  }
  return bytes;
}

}  // namespace qkv
