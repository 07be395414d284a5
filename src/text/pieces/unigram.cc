#include "text/pieces/unigram.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr double kUnknownPenalty = 10;     // an unknown character is so much worse than the worst piece
constexpr size_t kMaxUnigramPiece = 1024;  // bytes

// The best way to the end of a piece.
struct Node {
  double score = 0;
  int64_t begin = -1;  // of the piece; −1: no piece ends here
  int32_t id = 0;
};

}  // namespace

std::vector<int32_t> byte_fallback_pieces(std::span<const std::string> pieces) {
  std::vector<int32_t> ids(256, -1);
  for (size_t id = 0; id < pieces.size(); id++) {
    const std::string& piece = pieces[id];
    if (piece.size() != 6 || !piece.starts_with("<0x")) continue;
    for (int byte = 0; byte < 256; byte++)
      if (piece == fmt::format("<0x{:02X}>", byte)) ids[to_size(byte)] = static_cast<int32_t>(id);
  }
  return ids;
}

Unigram::Unigram(std::span<const std::string> pieces, std::span<const double> scores, std::optional<int32_t> unknown,
                 bool byte_fallback, const std::string& where)
    : scores_(scores.begin(), scores.end()), unknown_(unknown) {
  if (unknown && (*unknown < 0 || *unknown >= std::ssize(pieces)))
    fail("{}: unk_id must be below {}, the number of pieces (is {})", where, pieces.size(), *unknown);
  std::vector<std::pair<std::string, int32_t>> strings;
  for (size_t id = 0; id < pieces.size(); id++) {
    if (!std::isfinite(scores[id])) fail("{}: the score of piece {} must be finite (is {})", where, id, scores[id]);
    if (pieces[id].size() > kMaxUnigramPiece)
      fail("{}: piece {} must have at most {} bytes (has {})", where, id, kMaxUnigramPiece, pieces[id].size());
    strings.emplace_back(pieces[id], static_cast<int32_t>(id));
  }
  unknown_score_ = std::ranges::min(scores) - kUnknownPenalty;
  table_ = PrefixTable(std::move(strings));
  if (byte_fallback) bytes_ = byte_fallback_pieces(pieces);
}

void Unigram::encode(std::string_view word, std::vector<int32_t>& ids) const {
  std::vector<Node> best(word.size() + 1);
  const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    Node& node = best[end];
    if (node.begin >= 0 && !(score > node.score)) return;
    node = {score, static_cast<int64_t>(begin), id};
  };
  for (size_t begin = 0; begin < word.size();) {
    size_t next = begin;
    U8_FWD_1(word.data(), next, word.size());
    bool has_character = false;
    table_.for_each(word.substr(begin), [&](const PrefixTable::Match& match) {
      offer(begin, begin + match.length, match.value, scores_[to_size(match.value)] + best[begin].score);
      has_character |= begin + match.length == next;
    });
    if (!has_character) {
      if (!unknown_)
        fail("tokenizer: {} has no piece, and there is no unknown piece", excerpt(word.substr(begin, next - begin)));
      offer(begin, next, *unknown_, unknown_score_ + best[begin].score);
    }
    begin = next;
  }
  std::vector<Node> path;  // from the end
  size_t end = word.size();
  std::vector<size_t> ends;
  for (; end > 0; end = to_size(best[end].begin)) {
    path.push_back(best[end]);
    ends.push_back(end);
  }
  for (size_t i = path.size(); i-- > 0;) {
    if (path[i].id != unknown_) {
      ids.push_back(path[i].id);
      continue;
    }
    const auto begin = to_size(path[i].begin);
    while (i > 0 && path[i - 1].id == unknown_) i--;
    append_unknown(word.substr(begin, ends[i] - begin), ids);
  }
}

void Unigram::append_unknown(std::string_view part, std::vector<int32_t>& ids) const {
  const auto piece = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  const auto spelt = table_.longest(part);  // the unknown piece itself
  if (bytes_.empty() || (spelt && spelt->length == part.size()) ||
      std::ranges::any_of(part, [&](char byte) { return piece(byte) < 0; })) {
    ids.push_back(*unknown_);
    return;
  }
  for (const char byte : part) ids.push_back(piece(byte));
}

}  // namespace qkv
