// The division of the optimizer's work and state among ranks. The parameters that are trained form ranges. Each range
// consists of blocks of 2^14 parameters, the last one shorter. Runs of blocks form buckets, which are exchanged one
// after the other. Each rank owns its share of the blocks of every bucket, so that all ranks send and receive at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/to_size.h"

namespace qkv {

// A part of n things, which are divided among ranks.
struct EvenSlice {
  int64_t begin = 0, end = 0;
};

// Returns the share of rank r of R: from ⌊n r / R⌋ up to, but without, ⌊n (r + 1) / R⌋. Shares are in the order of the
// ranks, and some are empty if n < R.
inline EvenSlice even_slice(int64_t n, int64_t rank, int64_t ranks) {
  return {n * rank / ranks, n * (rank + 1) / ranks};
}

constexpr int64_t kSliceBlock = int64_t{1} << 14;

inline int64_t slice_blocks(int64_t size) { return (size + kSliceBlock - 1) / kSliceBlock; }

// The parameters first … first + size − 1 of a range. It begins with a block, and ends with one or with the range.
struct Slice {
  int64_t range = 0, first = 0, size = 0;
};

// Returns the buckets of ranges of these sizes, in order. A bucket has at most 8 MiB of float32 numbers, or four
// blocks for each rank if that is more. One rank has a bucket for each range.
std::vector<Slice> buckets_of(std::span<const int64_t> sizes, int64_t ranks);

// Returns the slice of a bucket that a rank owns. Slices are in the order of the ranks; their size may be 0.
Slice slice_of(const Slice& bucket, int64_t rank, int64_t ranks);

// Ranges of parameters, cut into buckets.
struct BucketList {
  std::span<const Slice> buckets;
  std::span<const int64_t> ranges;  // the first element of each range in an array

  int64_t first(const Slice& slice) const { return ranges[to_size(slice.range)] + slice.first; }
};

// Returns the slices of buckets that a rank owns, without the empty ones.
std::vector<Slice> slices_of(std::span<const Slice> buckets, int64_t rank, int64_t ranks);

}  // namespace qkv
