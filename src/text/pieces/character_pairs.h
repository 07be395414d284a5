// Byte-pair encoding of characters, as the library tokenizers has it: Sennrich et al., "Neural Machine Translation of
// Rare Words with Subword Units" (2016).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pieces/pair_merges.h"
#include "text/pieces/vocabulary.h"

namespace qkv {

struct CharacterPairsOptions {
  std::optional<std::string> unknown = {};  // the piece of a character without one; where none is, it gives nothing
  std::string prefix = {}, suffix = {};     // of characters that do not begin a word, and of the one that ends it
  bool fuse_unknown = false;                // unknown characters in a row are one piece
  bool byte_fallback = false;               // a character without a piece becomes its bytes, <0x…>, if all have one
  bool whole_words = false;                 // a word that is a piece is not merged

  bool operator==(const CharacterPairsOptions&) const = default;
};

class CharacterPairs {
 public:
  // `pieces`: how many of the vocabulary are the model's; words are not spelt with those behind. Throws Error,
  // beginning with `where`, as PairMerges does, and for an unknown piece that is not in the vocabulary.
  CharacterPairs(const Vocabulary& vocabulary, int32_t pieces,
                 std::span<const std::pair<std::string_view, std::string_view>> merges, CharacterPairsOptions options,
                 const std::string& where);

  // Appends the ids of a word of valid UTF-8, in time n log n.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  std::optional<int32_t> id(std::string_view piece) const;

  const Vocabulary& vocabulary_;
  int32_t pieces_;
  CharacterPairsOptions options_;
  std::optional<int32_t> unknown_;
  std::vector<int32_t> bytes_;  // the pieces of bytes; −1: none
  PairMerges merges_;
};

}  // namespace qkv
