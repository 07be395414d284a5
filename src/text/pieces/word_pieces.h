// WordPiece: a word is the longest piece that it begins with, then the longest that continues it, and so forth. Wu et
// al., "Google's Neural Machine Translation System" (2016), as Devlin et al., "BERT" (2019), have it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pieces/prefix_table.h"

namespace qkv {

class WordPieces {
 public:
  // Pieces by id, none twice. One that continues a word is spelt behind `continuation`. A word that the pieces do not
  // make up, or that has more than max_characters, becomes the piece `unknown`. Throws Error, beginning with `where`,
  // if that is no piece.
  WordPieces(std::span<const std::string> pieces, const std::string& unknown, const std::string& continuation,
             int64_t max_characters, const std::string& where);

  // Appends the ids of a word of valid UTF-8.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  PrefixTable beginnings_, continuations_;
  int64_t max_characters_;
  int32_t unknown_;
};

}  // namespace qkv
