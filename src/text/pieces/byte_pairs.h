// Byte-pair encoding of bytes: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016),
// on bytes as Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), have it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pieces/pair_merges.h"
#include "text/pieces/vocabulary.h"

namespace qkv {

// Pieces are spelt with a character a byte: printable ones stand for themselves, the others are U+0100 and up.
std::string spell_bytes(std::string_view bytes);
// Returns the bytes that a piece spells, or the piece itself if a character of it stands for no byte.
std::string bytes_of_spelling(std::string_view piece);

// Returns the first byte that is no piece of its own; nothing if all are.
std::optional<int> byte_without_piece(std::span<const std::string> pieces);

class BytePairs {
 public:
  // `merges` has a pair of pieces a line, "Ġ t", the one to merge first at the top. Throws Error, beginning with
  // `where`, if a part of a pair or what it becomes is not in the vocabulary, for a pair that stands twice, and beyond
  // 2^20 pairs.
  BytePairs(const Vocabulary& vocabulary, std::string_view merges, const std::string& where);

  // Appends the ids of a word. Bytes without a piece are left out, as in Hugging Face's tokenizers.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> bytes_;  // their pieces; −1: none
  PairMerges merges_;
};

}  // namespace qkv
