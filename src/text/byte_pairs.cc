#include "text/byte_pairs.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <queue>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kMaxMerges = size_t{1} << 20;

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

// A part of a word: it begins at some byte, and ends where the next one begins.
struct Part {
  int32_t piece;  // −1: it was merged with the one before
  int32_t before, after;
};

// Two parts that may be merged, if they are still there.
struct Candidate {
  int32_t rank, place;  // of the left one
  int32_t left, right, piece;

  bool operator<(const Candidate& other) const {  // for a queue whose top is the first to merge
    return std::pair(rank, place) > std::pair(other.rank, other.place);
  }
};

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
  const auto piece = [&](std::string_view spelling, size_t line) {
    const auto id = vocabulary.id(spelling);
    if (!id) fail("{}: merge {}: the piece {} is not in the vocabulary", where, line, excerpt(spelling));
    return *id;
  };
  for (size_t line = 1; !merges.empty(); line++) {
    const std::string_view text = merges.substr(0, merges.find('\n'));
    merges.remove_prefix(std::min(text.size() + 1, merges.size()));
    const size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos)
      fail("{}: merge {} is {}, expected two pieces with a space between", where, line, excerpt(text));
    if (merges_.size() == kMaxMerges) fail("{}: more than {} merges", where, kMaxMerges);
    const std::string_view left = text.substr(0, space), right = text.substr(space + 1);
    merges_.push_back({piece(left, line), piece(right, line), static_cast<int32_t>(merges_.size()),
                       piece(std::string(left).append(right), line)});
  }
  std::ranges::sort(merges_, {}, &Merge::pair);
  const auto twice = std::ranges::adjacent_find(merges_, {}, &Merge::pair);
  if (twice != merges_.end())
    fail("{}: the merge of {} and {} stands twice", where, excerpt(vocabulary.pieces()[to_size(twice->left)]),
         excerpt(vocabulary.pieces()[to_size(twice->right)]));
}

const BytePairs::Merge* BytePairs::find(int32_t left, int32_t right) const {
  const auto place = std::ranges::lower_bound(merges_, std::pair(left, right), {}, &Merge::pair);
  return place != merges_.end() && place->pair() == std::pair(left, right) ? &*place : nullptr;
}

void BytePairs::encode(std::string_view word, std::vector<int32_t>& ids) const {
  std::vector<Part> parts;
  for (const char byte : word)
    if (const int32_t piece = bytes_[static_cast<unsigned char>(byte)]; piece >= 0) {
      const auto i = static_cast<int32_t>(parts.size());
      parts.push_back({piece, i - 1, i + 1});
    }
  const auto n = static_cast<int32_t>(parts.size());
  const auto part = [&](int32_t place) -> Part& { return parts[to_size(place)]; };

  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int32_t place) {  // it and the one behind it
    if (place < 0 || part(place).after == n) return;
    const int32_t left = part(place).piece, right = part(part(place).after).piece;
    if (const Merge* merge = find(left, right)) candidates.push({merge->rank, place, left, right, merge->piece});
  };
  for (int32_t i = 0; i < n; i++) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Part& left = part(best.place);
    if (left.piece != best.left || left.after == n || part(left.after).piece != best.right) continue;
    part(left.after).piece = -1;
    left.piece = best.piece;
    left.after = part(left.after).after;
    if (left.after < n) part(left.after).before = best.place;
    consider(left.before);
    consider(best.place);
  }
  for (int32_t i = 0; i < n; i = part(i).after) ids.push_back(part(i).piece);
}

}  // namespace qkv
