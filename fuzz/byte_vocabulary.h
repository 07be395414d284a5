// A vocab.json with a piece for each byte.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/byte_pieces.h"

namespace qkv::fuzz {

inline std::string byte_vocabulary() {
  std::vector<std::string> pieces = testing::pieces_of_bytes();
  pieces.insert(pieces.end(), {"ab", "<s>", "</s>", "<unk>", "<mask>", "<|endoftext|>"});
  nlohmann::json ids;
  for (const std::string& piece : pieces) ids[piece] = ids.size();
  return ids.dump();
}

}  // namespace qkv::fuzz
