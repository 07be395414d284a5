#include "ranks/slices.h"

#include <algorithm>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kBuckets = 16;         // so that a small model has several, too
constexpr int64_t kMostBlocks = 1 << 7;  // of a bucket: 8 MiB
constexpr int64_t kLeastBlocks = 4;      // of a bucket, for each rank, so that messages are not small

// Returns the parameters of blocks [begin, end) of a range.
Slice of_blocks(int64_t range, int64_t size, EvenSlice blocks) {
  const int64_t first = blocks.begin * kSliceBlock, end = std::min(size, blocks.end * kSliceBlock);
  return {range, first, std::max<int64_t>(0, end - first)};
}

}  // namespace

std::vector<Slice> buckets_of(std::span<const int64_t> sizes, int64_t ranks) {
  int64_t all = 0;
  for (const int64_t size : sizes) all += slice_blocks(size);
  const int64_t most = ranks == 1 ? all : std::max(kLeastBlocks * ranks, std::min(all / kBuckets, kMostBlocks));
  std::vector<Slice> buckets;
  for (int64_t range = 0; range < std::ssize(sizes); range++) {
    const int64_t size = sizes[to_size(range)], blocks = slice_blocks(size), count = (blocks + most - 1) / most;
    for (int64_t i = 0; i < count; i++) buckets.push_back(of_blocks(range, size, even_slice(blocks, i, count)));
  }
  return buckets;
}

Slice slice_of(const Slice& bucket, int64_t rank, int64_t ranks) {
  Slice own = of_blocks(bucket.range, bucket.size, even_slice(slice_blocks(bucket.size), rank, ranks));
  own.first += bucket.first;
  return own;
}

std::vector<Slice> slices_of(std::span<const Slice> buckets, int64_t rank, int64_t ranks) {
  std::vector<Slice> slices;
  for (const Slice& bucket : buckets)
    if (const Slice own = slice_of(bucket, rank, ranks); own.size > 0) slices.push_back(own);
  return slices;
}

}  // namespace qkv
