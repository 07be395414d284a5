#include "text/pieces/byte_pairs.h"

#include <unicode/utf8.h>

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

struct Alphabet {
  std::array<UChar32, 256> character;
  std::array<int, 0x144> byte;  // of a character; −1: of none

  Alphabet() {
    byte.fill(-1);
    UChar32 next = 0x100;
    for (int b = 0; b < 256; b++) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
      character[to_size(b)] = printable ? b : next++;
      byte[to_size(character[to_size(b)])] = b;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet both;
  return both;
}

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) {
    const UChar32 c = alphabet().character[static_cast<unsigned char>(byte)];
    if (c < 0x80) {
      spelling += static_cast<char>(c);
    } else {
      spelling += static_cast<char>(0xC0 | (c >> 6));
      spelling += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return spelling;
}

std::string bytes_of_spelling(std::string_view piece) {
  std::string bytes;
  const auto length = static_cast<int64_t>(piece.size());
  for (int64_t i = 0; i < length;) {
    UChar32 c;
    U8_NEXT(piece.data(), i, length, c);
    if (c < 0 || c >= std::ssize(alphabet().byte) || alphabet().byte[to_size(c)] < 0) return std::string(piece);
    bytes += static_cast<char>(alphabet().byte[to_size(c)]);
  }
  return bytes;
}

std::optional<int> byte_without_piece(std::span<const std::string> pieces) {
  std::array<bool, 256> found{};
  for (const std::string& piece : pieces)
    if (const std::string bytes = bytes_of_spelling(piece); bytes.size() == 1 && spell_bytes(bytes) == piece)
      found[static_cast<unsigned char>(bytes[0])] = true;
  const auto missing = std::ranges::find(found, false);
  return missing == found.end() ? std::nullopt : std::optional(static_cast<int>(missing - found.begin()));
}

BytePairs::BytePairs(const Vocabulary& vocabulary, std::string_view merges, const std::string& where) {
  for (size_t byte = 0; byte < 256; byte++)
    bytes_[byte] = vocabulary.id(spell_bytes(std::string(1, static_cast<char>(byte)))).value_or(-1);
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (size_t line = 1; !merges.empty(); line++) {
    const std::string_view text = merges.substr(0, merges.find('\n'));
    merges.remove_prefix(std::min(text.size() + 1, merges.size()));
    const size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos)
      fail("{}: merge {} is {}, expected two pieces with a space between", where, line, excerpt(text));
    pairs.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  merges_ = PairMerges(vocabulary, pairs, "", where);
}

void BytePairs::encode(std::string_view word, std::vector<int32_t>& ids) const {
  std::vector<int32_t> pieces;
  for (const char byte : word)
    if (const int32_t piece = bytes_[static_cast<unsigned char>(byte)]; piece >= 0) pieces.push_back(piece);
  merges_.merge(pieces, ids);
}

}  // namespace qkv
