#include "ranks/gather_blocks.h"

#include <algorithm>
#include <vector>

#include "core/to_size.h"

namespace qkv {

void gather_blocks(const RankPartition& partition, std::span<const int64_t> begins, std::span<float> values) {
  const int64_t ranks = partition.ranks(), blocks = std::ssize(begins) - 1;
  if (ranks == 1) return;
  std::vector<int64_t> sizes(to_size(ranks));
  std::vector<int64_t> places;  // of each block among those of its rank
  for (int64_t b = 0; b < blocks; b++) {
    int64_t& size = sizes[to_size(b % ranks)];
    places.push_back(size);
    size += begins[to_size(b + 1)] - begins[to_size(b)];
  }
  std::vector<float> sent(to_size(*std::ranges::max_element(sizes) * ranks));
  const auto each = [&](int64_t block, auto&& f) {
    for (int64_t i = begins[to_size(block)]; i < begins[to_size(block + 1)]; i++)
      f(values[to_size(i)],
        sent[to_size((places[to_size(block)] + i - begins[to_size(block)]) * ranks + block % ranks)]);
  };
  partition.for_own(blocks, [&](int64_t b) { each(b, [](float own, float& to) { to = own; }); });
  partition.all_gather(std::span(sent));
  for (int64_t b = 0; b < blocks; b++) each(b, [](float& to, float from) { to = from; });
}

}  // namespace qkv
