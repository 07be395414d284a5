#include "dist/slices.h"

#include <algorithm>

#include "core/to_size.h"
#include "dist/share.h"

namespace qkv {

std::vector<Slice> slices_of(std::span<const int64_t> sizes, int64_t rank, int64_t ranks) {
  std::vector<Slice> slices;
  for (int64_t range = 0; range < std::ssize(sizes); range++) {
    const int64_t size = sizes[to_size(range)];
    const Share blocks = share_of(slice_blocks(size), rank, ranks);
    const int64_t first = blocks.begin * kSliceBlock, end = std::min(size, blocks.end * kSliceBlock);
    if (first < end) slices.push_back({range, first, end - first});
  }
  return slices;
}

}  // namespace qkv
