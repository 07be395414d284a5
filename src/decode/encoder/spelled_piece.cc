#include "decode/encoder/spelled_piece.h"

#include <variant>

#include "text/visible.h"

namespace qkv {

std::string spelled_piece(const TextCodec& codec, int32_t id) {
  if (!has_tokenizer_json(codec.unit())) return codec.piece(id);
  const HuggingFaceTokenizer& tokenizer = codec.hugging_face_tokenizer();
  const std::string bytes = tokenizer.has_byte_pieces() ? visible(codec.decode({&id, 1}, false)) : "";
  if (tokenizer.has_byte_pieces() && !bytes.empty()) return bytes;
  const std::string piece = codec.piece(id);
  if (tokenizer.has_byte_pieces()) return piece;
  const auto* words = std::get_if<WordPieceModel>(&tokenizer.spec().model);
  if (!words) return piece;
  const std::string& mark = words->continuation;
  return piece.starts_with(mark) && piece != mark ? piece.substr(mark.size()) : std::string(kWordStart) + piece;
}

}  // namespace qkv
