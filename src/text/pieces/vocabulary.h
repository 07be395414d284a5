// A list of pieces: token i is spelt pieces[i].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace qkv {

constexpr size_t kMaxPieces = size_t{1} << 19;  // some 100 bytes of memory each

class Vocabulary {
 public:
  // Throws Error, beginning with `where`, unless there are 1 to kMaxPieces pieces, each valid UTF-8 and none twice.
  Vocabulary(std::vector<std::string> pieces, const std::string& where);
  Vocabulary(const Vocabulary&) = delete;  // the ids refer to the pieces
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  const std::vector<std::string>& pieces() const { return pieces_; }
  std::optional<int32_t> id(std::string_view piece) const;

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

// A JSON array of strings, or a line a piece: lines end in LF, and a CR before it is a part of the piece unless every
// line has one. Throws Error, beginning with `where`.
std::vector<std::string> pieces_from_json(std::string_view text, const std::string& where);
std::vector<std::string> pieces_from_lines(std::string_view text, const std::string& where);

// A JSON array of strings, one a line.
std::string pieces_to_json(const std::vector<std::string>& pieces);

}  // namespace qkv
