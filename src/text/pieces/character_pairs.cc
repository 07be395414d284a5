#include "text/pieces/character_pairs.h"

#include <unicode/utf8.h>

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/pieces/unigram.h"

namespace qkv {

CharacterPairs::CharacterPairs(const Vocabulary& vocabulary, int32_t pieces,
                               std::span<const std::pair<std::string_view, std::string_view>> merges,
                               CharacterPairsOptions options, const std::string& where)
    : vocabulary_(vocabulary),
      pieces_(pieces),
      options_(std::move(options)),
      merges_(vocabulary, merges, options_.prefix, where) {
  if (options_.unknown && !(unknown_ = id(*options_.unknown)))
    fail("{}: the unknown token {} is not in the vocabulary", where, excerpt(*options_.unknown));
  if (options_.byte_fallback) bytes_ = byte_fallback_pieces(std::span(vocabulary.pieces()).first(to_size(pieces)));
}

std::optional<int32_t> CharacterPairs::id(std::string_view piece) const {
  const auto found = vocabulary_.id(piece);
  return found && *found < pieces_ ? found : std::nullopt;
}

void CharacterPairs::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (options_.whole_words)
    if (const auto whole = id(word)) {
      ids.push_back(*whole);
      return;
    }
  std::vector<int32_t> parts;
  bool unknown_waits = false;  // an unknown piece that the next ones may join
  const auto put_unknown = [&] {
    if (unknown_waits) parts.push_back(*unknown_);
    unknown_waits = false;
  };
  const auto byte_piece = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  std::string spelling;
  for (size_t begin = 0, end = 0; begin < word.size(); begin = end) {
    U8_FWD_1(word.data(), end, word.size());
    spelling.clear();
    if (begin > 0) spelling += options_.prefix;
    spelling.append(word, begin, end - begin);
    if (end == word.size()) spelling += options_.suffix;
    if (const auto found = id(spelling)) {
      put_unknown();
      parts.push_back(*found);
    } else if (!bytes_.empty() && std::ranges::all_of(spelling, [&](char byte) { return byte_piece(byte) >= 0; })) {
      for (const char byte : spelling) parts.push_back(byte_piece(byte));  // before an unknown piece that waits
    } else if (unknown_) {
      if (!options_.fuse_unknown) put_unknown();
      unknown_waits = true;
    }
  }
  put_unknown();
  merges_.merge(parts, ids);
}

}  // namespace qkv
