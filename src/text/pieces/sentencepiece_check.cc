#include "text/pieces/sentencepiece_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/fail.h"
#include "core/json.h"
#include "text/pieces/charsmap.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// The room that SentencePiece has for the pieces that begin a text: 1,024, and 64 for user-defined ones.
constexpr size_t kMaxPiece = 1024, kMaxNested = 64;
constexpr int32_t kUserDefined = 4;

enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// One message of the protobuf wire format, field by field.
class MessageReader {
 public:
  MessageReader(std::string_view message, const std::string& where) : rest_(message), where_(where) {}

  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    if (tag > std::numeric_limits<uint32_t>::max() || tag >> 3 == 0) broken("a field number");
    number_ = static_cast<uint32_t>(tag >> 3);
    wire_ = static_cast<Wire>(tag & 7);
    switch (wire_) {
      case Wire::varint:
        value_ = varint();
        return true;
      case Wire::fixed64:
        take(8);
        return true;
      case Wire::bytes:
        bytes_ = take(varint());
        return true;
      case Wire::fixed32:
        fixed32_ = take(4);
        return true;
    }
    broken("a field type");
  }

  bool is(uint32_t number, Wire wire) const { return number_ == number && wire_ == wire; }
  std::string_view bytes() const { return bytes_; }
  int32_t integer() const { return static_cast<int32_t>(value_); }
  float real() const {
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) bits |= static_cast<uint32_t>(static_cast<unsigned char>(fixed32_[i])) << (8 * i);
    return std::bit_cast<float>(bits);
  }

 private:
  [[noreturn]] void broken(const char* what) const {
    fail("{}: not a whole SentencePiece model: {} is broken, {} bytes before its message ends", where_, what,
         rest_.size());
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) broken("a field's size");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const unsigned char byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    broken("a number");
  }

  std::string_view rest_;
  const std::string& where_;
  uint32_t number_ = 0;
  Wire wire_ = Wire::varint;
  uint64_t value_ = 0;
  std::string_view bytes_, fixed32_;
};

struct Piece {
  std::string_view text;
  float score = 0;
  int32_t type = 0;
};

Piece read_piece(std::string_view message, const std::string& where) {
  Piece piece;
  MessageReader reader(message, where);
  while (reader.next()) {
    if (reader.is(1, Wire::bytes)) piece.text = reader.bytes();
    if (reader.is(2, Wire::fixed32) && std::isfinite(piece.score)) piece.score = reader.real();
    if (reader.is(3, Wire::varint)) piece.type = reader.integer();
  }
  return piece;
}

void check_piece(const Piece& piece, int64_t index, const std::string& where) {
  if (!std::isfinite(piece.score)) fail("{}: piece {}: score {}, expected a finite number", where, index, piece.score);
  if (piece.text.empty() || piece.text.size() > kMaxPiece)
    fail("{}: piece {}: {} bytes, expected 1 to {}", where, index, piece.text.size(), kMaxPiece);
  if (find_invalid_utf8(piece.text) != std::string_view::npos || piece.text.find('\0') != std::string_view::npos)
    fail("{}: piece {}: expected valid UTF-8 without a zero byte", where, index);
}

// Throws Error if more than kMaxNested user-defined pieces begin a text.
void check_nesting(std::string_view model, const std::string& where) {
  std::vector<std::string_view> pieces, nested;  // all, and those that begin the last one of `nested`
  MessageReader reader(model, where);
  while (reader.next())
    if (reader.is(1, Wire::bytes))
      if (const Piece piece = read_piece(reader.bytes(), where); piece.type == kUserDefined)
        pieces.push_back(piece.text);
  std::ranges::sort(pieces);
  for (const std::string_view piece : pieces) {
    while (!nested.empty() && !piece.starts_with(nested.back())) nested.pop_back();
    nested.push_back(piece);
    if (nested.size() > kMaxNested)
      fail("{}: more than {} user-defined pieces begin with {}", where, kMaxNested, excerpt(nested.front()));
  }
}

void check_normalizer(std::string_view message, const std::string& where) {
  MessageReader reader(message, where);
  while (reader.next())
    if (reader.is(2, Wire::bytes)) check_charsmap(reader.bytes(), where);
}

}  // namespace

void check_sentencepiece(std::string_view model, const std::string& where) {
  int64_t pieces = 0;
  bool trainer = false, normalizer = false, may_nest = false;
  MessageReader reader(model, where);
  while (reader.next()) {
    if (reader.is(1, Wire::bytes)) {
      const Piece piece = read_piece(reader.bytes(), where);
      check_piece(piece, pieces++, where);
      may_nest |= piece.type == kUserDefined && piece.text.size() > kMaxNested;
    }
    if (reader.is(2, Wire::bytes)) trainer = true;
    if (reader.is(3, Wire::bytes)) normalizer = true;
    if (reader.is(3, Wire::bytes) || reader.is(5, Wire::bytes)) check_normalizer(reader.bytes(), where);
  }
  if (pieces == 0 || !trainer || !normalizer)
    fail("{}: not a whole SentencePiece model: {} pieces, {} trainer's settings, {} normalizer's settings", where,
         pieces, trainer ? "with" : "no", normalizer ? "with" : "no");
  if (may_nest) check_nesting(model, where);
}

// The last one counts if a field is there twice.
std::string_view charsmap_of(std::string_view model) {
  const std::string where;
  std::string_view table;
  MessageReader reader(model, where);
  while (reader.next()) {
    if (!reader.is(3, Wire::bytes)) continue;
    MessageReader normalizer(reader.bytes(), where);
    while (normalizer.next())
      if (normalizer.is(2, Wire::bytes)) table = normalizer.bytes();
  }
  return table;
}

std::vector<int32_t> piece_types(std::string_view model) {
  constexpr int32_t kNormal = 1;
  const std::string where = "SentencePiece model";
  std::vector<int32_t> types;
  MessageReader reader(model, where);
  while (reader.next())
    if (reader.is(1, Wire::bytes)) {
      const int32_t type = read_piece(reader.bytes(), where).type;
      types.push_back(type == 0 ? kNormal : type);
    }
  return types;
}

SentencePieceContents sentencepiece_contents(std::string_view model) {
  const std::string where = "SentencePiece model";
  SentencePieceContents contents;
  MessageReader reader(model, where);
  while (reader.next()) {
    if (reader.is(1, Wire::bytes)) {
      const Piece piece = read_piece(reader.bytes(), where);
      contents.pieces.push_back({piece.text, piece.score, piece.type == 0 ? 1 : piece.type});
    }
    if (!reader.is(2, Wire::bytes) && !reader.is(3, Wire::bytes)) continue;
    const bool is_trainer = reader.is(2, Wire::bytes);
    MessageReader settings(reader.bytes(), where);
    while (settings.next()) {
      const auto flag = [&](uint32_t number, bool& member) {
        if (settings.is(number, Wire::varint)) member = settings.integer() != 0;
      };
      if (is_trainer) {
        if (settings.is(3, Wire::varint)) contents.kind = settings.integer();
        flag(24, contents.space_behind);
        flag(35, contents.byte_fallback);
      } else {
        if (settings.is(2, Wire::bytes)) contents.charsmap = settings.bytes();
        flag(3, contents.space_first);
        flag(4, contents.strips_spaces);
        flag(5, contents.marks_spaces);
      }
    }
  }
  return contents;
}

}  // namespace qkv
