// Pieces with scores: a text becomes the pieces whose scores have the largest sum. Kudo, "Subword Regularization"
// (2018), as the library tokenizers has it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pieces/prefix_table.h"

namespace qkv {

class Unigram {
 public:
  // Pieces by id, none twice, and their scores. `unknown`: the id of a character that no piece holds. Throws Error,
  // beginning with `where`, for scores that are not finite, pieces of more than 1,024 bytes, an id that is no piece.
  Unigram(std::span<const std::string> pieces, std::span<const double> scores, std::optional<int32_t> unknown,
          bool byte_fallback, const std::string& where);

  // Appends the ids of a word of valid UTF-8. Unknown characters in a row are one unknown piece, or their bytes with
  // byte_fallback, if each has a piece <0x…>. Throws Error for one where there is no unknown piece.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  void append_unknown(std::string_view part, std::vector<int32_t>& ids) const;

  PrefixTable table_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::optional<int32_t> unknown_;
  std::vector<int32_t> bytes_;  // their pieces; empty without byte_fallback
};

// Returns the ids of <0x00> … <0xFF> among the pieces; −1 for those that are not there.
std::vector<int32_t> byte_fallback_pieces(std::span<const std::string> pieces);

}  // namespace qkv
