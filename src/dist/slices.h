// The division of the optimizer's work and state among ranks. The parameters that are trained form ranges. Each range
// consists of blocks of 2^14 parameters, the last one shorter, and each rank owns its share of the blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qkv {

constexpr int64_t kSliceBlock = int64_t{1} << 14;

inline int64_t slice_blocks(int64_t size) { return (size + kSliceBlock - 1) / kSliceBlock; }

// The parameters first … first + size − 1 of a range. It begins with a block, and ends with one or with the range.
struct Slice {
  int64_t range = 0, first = 0, size = 0;
};

// Returns the slices that a rank owns: of each range, whose sizes are given, at most one.
std::vector<Slice> slices_of(std::span<const int64_t> sizes, int64_t rank, int64_t ranks);

}  // namespace qkv
