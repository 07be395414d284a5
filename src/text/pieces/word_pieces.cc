#include "text/pieces/word_pieces.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "text/unicode.h"

namespace qkv {

WordPieces::WordPieces(std::span<const std::string> pieces, const std::string& unknown, const std::string& continuation,
                       int64_t max_characters, const std::string& where)
    : max_characters_(max_characters) {
  const auto place = std::ranges::find(pieces, unknown);
  if (place == pieces.end()) fail("{}: the unknown token {} is not in the vocabulary", where, excerpt(unknown));
  unknown_ = static_cast<int32_t>(place - pieces.begin());
  std::vector<std::pair<std::string, int32_t>> beginnings, continuations;
  for (size_t id = 0; id < pieces.size(); id++) {
    const std::string& piece = pieces[id];
    if (!piece.empty()) beginnings.emplace_back(piece, static_cast<int32_t>(id));
    if (piece.starts_with(continuation) && piece.size() > continuation.size())
      continuations.emplace_back(piece.substr(continuation.size()), static_cast<int32_t>(id));
  }
  beginnings_ = PrefixTable(std::move(beginnings));
  continuations_ = PrefixTable(std::move(continuations));
}

void WordPieces::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  const auto characters = count_characters(word);
  bool found = characters <= max_characters_;
  for (const PrefixTable* table = &beginnings_; found && !word.empty(); table = &continuations_) {
    const auto piece = table->longest(word);
    found = piece.has_value();
    if (!found) break;
    ids.push_back(piece->value);
    word.remove_prefix(piece->length);
  }
  if (found) return;
  ids.resize(before);
  ids.push_back(unknown_);
}

}  // namespace qkv
