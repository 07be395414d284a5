// The place of a translation that best separates the words before a place of the source from those after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "documents/aligned_units.h"

namespace qkv {

class BoundaryFinder {
 public:
  explicit BoundaryFinder(const AlignedUnits& aligned);

  // Returns b such that the units on the wrong side have the least weight: those before b that are aligned with a token
  // from `token` on, and those from b on that are aligned with one before; the first such b. Calls have rising tokens.
  // The results rise as well. Takes time n log n for all of n units.
  size_t find(size_t token);

 private:
  // The sums of the weights of the first units of a range: all of them, and the least sum with its number of units.
  struct Node {
    int64_t sum = 0, least = 0;
    size_t count = 0;
  };

  void set(size_t unit, int64_t weight);
  void update(size_t node, size_t units);

  const AlignedUnits& aligned_;
  std::vector<std::vector<size_t>> units_of_;  // of each source token
  size_t width_ = 1;                           // leaves of the tree, a power of two
  std::vector<Node> nodes_;                    // the children of node i are 2i and 2i + 1
  size_t done_ = 0;                            // tokens before
};

}  // namespace qkv
