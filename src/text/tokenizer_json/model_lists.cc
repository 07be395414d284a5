#include "text/tokenizer_json/model_lists.h"

#include <algorithm>

#include "core/fail.h"
#include "core/to_size.h"
#include "text/pieces/vocabulary.h"
#include "text/tokenizer_json/pipeline.h"

namespace qkv {

void ModelLists::take(const JsonItem& item) {
  if (!wrong_.empty()) return;
  if (item.list == "merges")
    add_part_of_merge(item);
  else if (item.depth == 2)
    add_scored_piece(item);
  else
    add_piece(item);
}

void ModelLists::fill(const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added)
    if (token.id < std::ssize(pieces_) && pieces_[to_size(token.id)].empty()) pieces_[to_size(token.id)] = token.text;
}

void ModelLists::check(const std::string& where) const {
  if (!wrong_.empty()) fail("{}: {}", where, wrong_);
  if (half_) fail("{}: model.merges: a merge of one piece, expected two", where);
  const auto gap = std::ranges::find(pieces_, "");
  if (gap != pieces_.end()) fail("{}: model.vocab: no piece has id {}", where, gap - pieces_.begin());
}

void ModelLists::add_piece(const JsonItem& item) {
  if (item.depth > 1 || item.name.empty() || item.kind != JsonItem::Kind::number || item.number >= kMaxPieces) {
    wrong_ = fmt::format("model.vocab: {} has no id from 0 to {}", excerpt(item.name), kMaxPieces - 1);
    return;
  }
  if (item.number >= pieces_.size()) pieces_.resize(item.number + 1);
  if (!pieces_[item.number].empty())
    wrong_ = fmt::format("model.vocab: {} and {} have the id {}", excerpt(pieces_[item.number]), excerpt(item.name),
                         item.number);
  pieces_[item.number] = item.name;
}

// ["a", -1.5]: the next piece and its score.
void ModelLists::add_scored_piece(const JsonItem& item) {
  if (item.place == 0 && item.kind == JsonItem::Kind::string && pieces_.size() == scores_.size())
    pieces_.emplace_back(item.text);
  else if (item.place == 1 && item.kind != JsonItem::Kind::string && item.kind != JsonItem::Kind::other &&
           pieces_.size() == scores_.size() + 1)
    scores_.push_back(item.real);
  else
    wrong_ = fmt::format("model.vocab: entry {} must be a piece and its score", scores_.size());
  if (pieces_.size() > kMaxPieces) wrong_ = fmt::format("model.vocab: more than {} pieces", kMaxPieces);
}

// "a b", or ["a", "b"].
void ModelLists::add_part_of_merge(const JsonItem& item) {
  const bool whole = item.depth == 1 && !half_;
  const bool part = item.depth == 2 && item.place == (half_ ? 1 : 0);
  if (item.kind != JsonItem::Kind::string || !item.name.empty() || !(whole || part)) {
    wrong_ = fmt::format("model.merges: {} is not a part of a pair of pieces", excerpt(item.text));
    return;
  }
  if (part) {
    if (half_) add_pair(left_, item.text, merges_);
    left_ = item.text;
    count_ += half_;
    half_ = !half_;
    return;
  }
  if (item.text.starts_with("#version")) return;
  const size_t space = item.text.find(' ');
  count_++;
  if (space == item.text.npos || item.text.find(' ', space + 1) != item.text.npos)
    wrong_ = fmt::format("merge {} is {}, expected two pieces with a space between", count_, excerpt(item.text));
  else
    add_pair(item.text.substr(0, space), item.text.substr(space + 1), merges_);
}

}  // namespace qkv
