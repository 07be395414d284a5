#include "ranks/gradient_exchange.h"

#include <algorithm>

#include "ranks/direct_gradients.h"
#include "ranks/even_slice.h"
#include "ranks/halving_gradients.h"

namespace qkv {

std::vector<std::vector<TreeNode>> nodes_of_ranks(int64_t shards, int ranks) {
  std::vector<std::vector<TreeNode>> nodes;
  for (int rank = 0; rank < ranks; rank++) {
    const EvenSlice own = even_slice(shards, rank, ranks);
    nodes.push_back(largest_nodes(shards, own.begin, own.end));
  }
  return nodes;
}

size_t buckets_in_flight(size_t bytes, size_t buckets) {
  constexpr size_t kBytes = size_t{24} << 20, kLeast = 3;
  return std::min(buckets, std::max(kLeast, kBytes / std::max<size_t>(bytes, 1)));
}

std::unique_ptr<GradientExchange> make_gradient_exchange(Communicator& communicator, int64_t shards,
                                                         const BucketList& list) {
  const int64_t ranks = communicator.size();
  const bool one_node = std::ranges::all_of(nodes_of_ranks(shards, communicator.size()),
                                            [](const auto& nodes) { return nodes.size() == 1; });
  if (halves(ranks) && one_node) return std::make_unique<HalvingGradients>(communicator, list);
  return std::make_unique<DirectGradients>(communicator, shards, list);
}

}  // namespace qkv
