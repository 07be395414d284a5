// A small tokenizer of byte-level BPE.
#pragma once

#include <string>

#include "text/byte_pairs.h"
#include "text/tokenizer_json.h"

namespace qkv::testing {

// All bytes, "ab", and <end>, which is 257.
inline TokenizerSpec byte_pieces() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; byte++) spec.pieces.push_back(spell_bytes(std::string(1, static_cast<char>(byte))));
  spec.pieces.push_back("ab");
  spec.added = {{.id = 257, .text = "<end>"}};
  spec.model = BytePieces{.merges = "a b\n"};
  return spec;
}

}  // namespace qkv::testing
