// The division of the optimizer's work and state among ranks. The parameters that are trained form ranges. Each range
// consists of blocks of 2^14 parameters, the last one shorter. Runs of blocks form buckets, which are exchanged one
// after the other. Each rank owns its share of the blocks of every bucket, so that all ranks send and receive at once.
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

// Returns the buckets of ranges of these sizes, in order. A bucket has at most 8 MiB of float32 numbers, or one block
// for each rank if that is more. One rank has a bucket for each range.
std::vector<Slice> buckets_of(std::span<const int64_t> sizes, int64_t ranks);

// Returns the slice of a bucket that a rank owns; its size may be 0.
Slice slice_of(const Slice& bucket, int64_t rank, int64_t ranks);

// Returns the slices of buckets that a rank owns, without the empty ones.
std::vector<Slice> slices_of(std::span<const Slice> buckets, int64_t rank, int64_t ranks);

}  // namespace qkv
