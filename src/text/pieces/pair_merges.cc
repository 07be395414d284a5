#include "text/pieces/pair_merges.h"

#include <algorithm>
#include <queue>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kMaxMerges = size_t{1} << 20;

// A part of a word: it begins at some byte, and ends where the next one begins.
struct Part {
  int32_t piece;  // −1: it was merged with the one before
  int32_t before, after;
};

// Two parts that may be merged, if they are still there.
struct Candidate {
  int32_t rank, place;  // of the left one
  int32_t left, right, piece;

  bool operator<(const Candidate& other) const {  // for a queue whose top is the first to merge
    return std::pair(rank, place) > std::pair(other.rank, other.place);
  }
};

}  // namespace

PairMerges::PairMerges(const Vocabulary& vocabulary,
                       std::span<const std::pair<std::string_view, std::string_view>> merges, std::string_view prefix,
                       const std::string& where) {
  if (merges.size() > kMaxMerges) fail("{}: more than {} merges", where, kMaxMerges);
  merges_.reserve(merges.size());
  const auto piece = [&](std::string_view spelling) {
    const auto id = vocabulary.id(spelling);
    if (!id) fail("{}: merge {}: the piece {} is not in the vocabulary", where, merges_.size() + 1, excerpt(spelling));
    return *id;
  };
  std::string joined;
  for (const auto& [left, right] : merges) {
    joined.assign(left).append(right.substr(right.starts_with(prefix) ? prefix.size() : 0));
    merges_.push_back({piece(left), piece(right), static_cast<int32_t>(merges_.size()), piece(joined)});
  }
  std::ranges::sort(merges_, {}, &Merge::pair);
  const auto twice = std::ranges::adjacent_find(merges_, {}, &Merge::pair);
  if (twice != merges_.end())
    fail("{}: the merge of {} and {} stands twice", where, excerpt(vocabulary.pieces()[to_size(twice->left)]),
         excerpt(vocabulary.pieces()[to_size(twice->right)]));
}

const PairMerges::Merge* PairMerges::find(int32_t left, int32_t right) const {
  const auto place = std::ranges::lower_bound(merges_, std::pair(left, right), {}, &Merge::pair);
  return place != merges_.end() && place->pair() == std::pair(left, right) ? &*place : nullptr;
}

void PairMerges::merge(std::span<const int32_t> pieces, std::vector<int32_t>& ids) const {
  if (pieces.size() < 2) {
    ids.insert(ids.end(), pieces.begin(), pieces.end());
    return;
  }
  const auto n = static_cast<int32_t>(pieces.size());
  std::vector<Part> parts;
  parts.reserve(pieces.size());
  for (int32_t i = 0; i < n; i++) parts.push_back({pieces[to_size(i)], i - 1, i + 1});
  const auto part = [&](int32_t place) -> Part& { return parts[to_size(place)]; };

  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int32_t place) {  // it and the one behind it
    if (place < 0 || part(place).after == n) return;
    const int32_t left = part(place).piece, right = part(part(place).after).piece;
    if (const Merge* merge = find(left, right)) candidates.push({merge->rank, place, left, right, merge->piece});
  };
  for (int32_t i = 0; i < n; i++) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Part& left = part(best.place);
    if (left.piece != best.left || left.after == n || part(left.after).piece != best.right) continue;
    part(left.after).piece = -1;
    left.piece = best.piece;
    left.after = part(left.after).after;
    if (left.after < n) part(left.after).before = best.place;
    consider(left.before);
    consider(best.place);
  }
  for (int32_t i = 0; i < n; i = part(i).after) ids.push_back(part(i).piece);
}

}  // namespace qkv
