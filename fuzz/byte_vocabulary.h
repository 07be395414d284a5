// A vocab.json with a piece for each byte.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "text/byte_pairs.h"

namespace qkv::fuzz {

inline std::string byte_vocabulary() {
  nlohmann::json pieces;
  for (int byte = 0; byte < 256; byte++) pieces[spell_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  for (const char* piece : {"ab", "<s>", "</s>", "<unk>", "<mask>", "<|endoftext|>"}) pieces[piece] = pieces.size();
  return pieces.dump();
}

}  // namespace qkv::fuzz
