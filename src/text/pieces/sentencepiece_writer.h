// Writes a SentencePiece model file (sentencepiece_model.proto) of the BPE kind from its pieces and scores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qkv {

// The types of pieces, by their numbers in a file.
constexpr int32_t kNormalPiece = 1, kUnknownPiece = 2, kControlPiece = 3, kUserDefinedPiece = 4, kUnusedPiece = 5,
                  kBytePiece = 6;

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    int32_t type = kNormalPiece;
  };
  std::vector<Piece> pieces = {};   // by id
  std::string start, end, unknown;  // spellings of special pieces; "" if there is none
  bool space_first = true;          // a space before a text; other spaces stay as they are
};

// Returns a message that adds a piece to a model when it follows the bytes of its file.
std::string serialize(const SentencePieceModel::Piece& piece);

// Returns the bytes of the file. They are not checked: Tokenizer::from_serialized does that.
std::string serialize(const SentencePieceModel& model);

}  // namespace qkv
