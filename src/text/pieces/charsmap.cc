#include "text/pieces/charsmap.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <array>
#include <cstring>

#include "core/fail.h"
#include "core/to_size.h"
#include "text/pieces/charsmap_check.h"
#include "text/pieces/charsmap_trie.h"
#include "text/tokenizer_json/text_pattern.h"

namespace qkv {
namespace {

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

}  // namespace

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

std::string from_base64(std::string_view text, const std::string& where) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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
