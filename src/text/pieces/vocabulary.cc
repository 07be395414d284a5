#include "text/pieces/vocabulary.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {

Vocabulary::Vocabulary(std::vector<std::string> pieces, const std::string& where) : pieces_(std::move(pieces)) {
  if (pieces_.empty() || pieces_.size() > kMaxPieces)
    fail("{}: a vocabulary of {} pieces, expected 1 to {}", where, pieces_.size(), kMaxPieces);
  ids_.reserve(pieces_.size());
  for (size_t i = 0; i < pieces_.size(); i++) {
    if (find_invalid_utf8(pieces_[i]) != std::string::npos) fail("{}: piece {} is not valid UTF-8", where, i);
    const auto [place, added] = ids_.emplace(pieces_[i], static_cast<int32_t>(i));
    if (!added) fail("{}: pieces {} and {} are both {}", where, place->second, i, excerpt(pieces_[i]));
  }
}

std::optional<int32_t> Vocabulary::id(std::string_view piece) const {
  const auto place = ids_.find(piece);
  if (place == ids_.end()) return {};
  return place->second;
}

std::vector<std::string> pieces_from_json(std::string_view text, const std::string& where) {
  return parse_json_strings(text, where);
}

std::vector<std::string> pieces_from_lines(std::string_view text, const std::string& where) {
  const auto lines = to_size(std::ranges::count(text, '\n')) + 1;
  if (lines > kMaxPieces) fail("{}: more than {} lines, too many pieces", where, kMaxPieces);
  std::vector<std::string> pieces;
  pieces.reserve(lines);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (std::ranges::all_of(pieces, [](const std::string& piece) { return piece.ends_with('\r'); }))
    for (std::string& piece : pieces) piece.pop_back();
  return pieces;
}

std::string pieces_to_json(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) lines.push_back(json_string(piece));
  return fmt::format("[\n{}\n]\n", fmt::join(lines, ",\n"));
}

}  // namespace qkv
