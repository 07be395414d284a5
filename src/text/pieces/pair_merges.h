// The merges of byte-pair encoding: which two adjacent pieces become one, and which of them first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/pieces/vocabulary.h"

namespace qkv {

class PairMerges {
 public:
  PairMerges() = default;
  // `merges` in order, the one to merge first at the front. The second piece of a pair loses `prefix` where it is
  // merged. Throws Error, beginning with `where`, if a part of a pair or what it becomes is not in the vocabulary, for
  // a pair that stands twice, and beyond 2^20 pairs.
  PairMerges(const Vocabulary& vocabulary, std::span<const std::pair<std::string_view, std::string_view>> merges,
             std::string_view prefix, const std::string& where);

  // Appends the ids that a word of these pieces becomes. The pair that stands highest in the list is merged first, the
  // leftmost of several, in time n log n.
  void merge(std::span<const int32_t> pieces, std::vector<int32_t>& ids) const;

 private:
  struct Merge {
    int32_t left, right;  // ids
    int32_t rank, piece;  // place in the list, what it becomes

    std::pair<int32_t, int32_t> pair() const { return {left, right}; }
  };
  const Merge* find(int32_t left, int32_t right) const;  // null: the two do not merge

  std::vector<Merge> merges_;  // sorted by pair
};

}  // namespace qkv
