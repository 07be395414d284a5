// Checks a SentencePiece model before the library sees it: SentencePiece 0.1.97 trusts the sizes and positions that are
// written in a model and reads past its own buffers if they lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Walks the protobuf bytes of a ModelProto (sentencepiece_model.proto). Throws Error, beginning with `where`, unless
// - every field ends within its message, and the pieces, the trainer's and the normalizer's settings are there;
// - every piece has 1 to 1,024 bytes of UTF-8 without a zero byte, and a finite score;
// - at most 64 user-defined pieces begin the same text;
// - every walk through a normalizer's table (precompiled_charsmap) stays inside it.
void check_sentencepiece(std::string_view model, const std::string& where);

// Returns the normalizer's table of a model that has been checked; "" if there is none.
std::string_view charsmap_of(std::string_view model);

// Returns the types of the pieces of a model that was checked, by id (text/pieces/sentencepiece_writer.h names them).
std::vector<int32_t> piece_types(std::string_view model);

// The parts of a model file on which the ids of texts depend; views of its bytes.
struct SentencePieceContents {
  struct Piece {
    std::string_view text;
    float score = 0;
    int32_t type = 1;  // as in piece_types
  };
  std::vector<Piece> pieces = {};
  int32_t kind = 1;  // 1: unigram, 2: byte-pair encoding, 3: words, 4: characters
  bool byte_fallback = false;
  bool space_first = true;    // a space before a text
  bool space_behind = false;  // spaces end words instead of beginning them
  bool strips_spaces = true;  // spaces at the ends and runs of spaces are dropped
  bool marks_spaces = true;   // "▁" stands for a space
  std::string_view charsmap = {};
};

// Returns the contents of a model that was checked.
SentencePieceContents sentencepiece_contents(std::string_view model);

}  // namespace qkv
