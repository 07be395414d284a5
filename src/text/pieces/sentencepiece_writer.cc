#include "text/pieces/sentencepiece_writer.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace qkv {
namespace {

void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void put_number(std::string& to, uint32_t field, uint64_t value) {
  put_varint(to, field << 3);
  put_varint(to, value);
}

void put_float(std::string& to, uint32_t field, float value) {
  put_varint(to, field << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(bits >> shift);
}

void put_bytes(std::string& to, uint32_t field, std::string_view bytes) {
  put_varint(to, field << 3 | 2);
  put_varint(to, bytes.size());
  to += bytes;
}

constexpr uint64_t kBytePairModel = 2;  // TrainerSpec.ModelType.BPE

std::string trainer_settings(const SentencePieceModel& model) {
  std::string settings;
  put_number(settings, 3, kBytePairModel);
  put_number(settings, 4, model.pieces.size());
  put_number(settings, 35, std::ranges::any_of(model.pieces, [](const auto& p) { return p.type == kBytePiece; }));
  put_bytes(settings, 45, model.unknown);
  put_bytes(settings, 46, model.start);
  put_bytes(settings, 47, model.end);
  return settings;
}

std::string normalizer_settings(const SentencePieceModel& model) {
  std::string settings;
  put_bytes(settings, 1, "identity");
  put_number(settings, 3, model.space_first);
  put_number(settings, 4, false);  // remove_extra_whitespaces
  put_number(settings, 5, true);   // escape_whitespaces
  return settings;
}

}  // namespace

std::string serialize(const SentencePieceModel::Piece& piece) {
  std::string message, bytes;
  put_bytes(message, 1, piece.text);
  put_float(message, 2, piece.score);
  put_number(message, 3, static_cast<uint64_t>(piece.type));
  put_bytes(bytes, 1, message);
  return bytes;
}

std::string serialize(const SentencePieceModel& model) {
  std::string bytes;
  for (const SentencePieceModel::Piece& piece : model.pieces) bytes += serialize(piece);
  put_bytes(bytes, 2, trainer_settings(model));
  put_bytes(bytes, 3, normalizer_settings(model));
  return bytes;
}

}  // namespace qkv
