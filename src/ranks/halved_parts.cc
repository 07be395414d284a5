#include "ranks/halved_parts.h"

namespace qkv {
namespace {

struct Part {
  int64_t first = 0, size = 0;
};

// Returns what `count` ranks share, whose slices begin with that at `place`.
Part part_of(const BucketList& list, const Slice& bucket, int64_t place, int64_t count, int64_t ranks) {
  const Slice first = slice_at(bucket, place, ranks), last = slice_at(bucket, place + count - 1, ranks);
  return {list.first(first), last.first + last.size - first.first};
}

}  // namespace

std::vector<HalvedPart> halved_parts(const BucketList& list, const Slice& bucket, int64_t rank, int64_t ranks) {
  std::vector<HalvedPart> parts;
  for (int64_t partner = 1, count = ranks / 2; count > 0; partner *= 2, count /= 2) {
    const auto half_of = [&](int64_t owner) {
      return part_of(list, bucket, place_of(owner, ranks) / count * count, count, ranks);
    };
    const Part own = half_of(rank), other = half_of(rank ^ partner);
    parts.push_back({own.first, own.size, other.first, other.size});
  }
  return parts;
}

}  // namespace qkv
