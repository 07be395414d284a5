// A small tokenizer of byte-level BPE.
#pragma once

#include <string>
#include <vector>

#include "text/pieces/byte_pairs.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv::testing {

// The piece of each byte.
inline std::vector<std::string> pieces_of_bytes() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; byte++) pieces.push_back(spell_bytes(std::string(1, static_cast<char>(byte))));
  return pieces;
}

// All bytes, "ab", and <end>, which is 257.
inline TokenizerSpec byte_pieces() {
  TokenizerSpec spec;
  spec.pieces = pieces_of_bytes();
  spec.pieces.push_back("ab");
  spec.added = {{.id = 257, .text = "<end>"}};
  spec.model = BytePieces{.merges = "a b\n"};
  return spec;
}

}  // namespace qkv::testing
