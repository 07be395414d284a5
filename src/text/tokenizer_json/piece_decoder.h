// The decoder of a tokenizer.json: the text of pieces.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Immutable; its methods may be called from many threads.
class PieceDecoder {
 public:
  // `value` may be null: pieces stand between spaces. Steps: Metaspace, ByteLevel, WordPiece, Replace, Strip,
  // ByteFallback, Fuse, and a Sequence of them. Throws Error, beginning with `where`, for others, and for a sequence in
  // which the text of a piece depends on those behind it.
  PieceDecoder(const nlohmann::json* value, const std::string& where);

  // Returns the bytes of a piece, a part of a character among them. `first`: whether it begins the text.
  std::string decode(std::string_view piece, bool first) const;

 private:
  std::vector<std::function<std::string(std::string_view, bool first)>> steps_;
};

}  // namespace qkv
