// The parts of a bucket that 2^k ranks exchange when they halve it: at level 0 with rank xor 1, then half of the rest
// with rank xor 2, and so on, until each has its slice. Doubling takes the levels in reverse.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/slices.h"

namespace qkv {

// Elements of an array, at one level.
struct HalvedPart {
  int64_t own = 0, own_size = 0;      // the half that the rank keeps
  int64_t other = 0, other_size = 0;  // the half that its partner keeps
};

// Returns the parts of a rank by level.
std::vector<HalvedPart> halved_parts(const BucketList& list, const Slice& bucket, int64_t rank, int64_t ranks);

}  // namespace qkv
