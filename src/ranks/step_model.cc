#include "ranks/step_model.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ranks/slices.h"

namespace qkv {
namespace {

// Returns the seconds in which a rank sends its gradients, or its weights, to all others, and receives theirs.
double exchange_seconds(const StepCosts& costs, const Network& network, int64_t ranks) {
  const double bytes =
      4.0 * static_cast<double>(costs.parameters) * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const auto buckets = buckets_of(std::span(&costs.parameters, 1), ranks).size();
  const double messages = static_cast<double>(ranks - 1) * static_cast<double>(buckets);
  return bytes / network.bytes_per_second + messages * network.message_seconds;
}

}  // namespace

double step_seconds(const StepCosts& costs, const Network& network, int64_t shards, int64_t ranks, bool overlaps) {
  if (ranks == 1) return static_cast<double>(shards) * costs.shard + costs.update;
  const double R = static_cast<double>(ranks), n = std::ceil(static_cast<double>(shards) / R);
  const double compute = n * costs.shard * (1 + costs.spread * std::sqrt(2 * std::log(R) / n));
  const double exchange = exchange_seconds(costs, network, ranks);
  const auto left = [&](double hidden) {
    return overlaps ? std::max(costs.embedding_share * exchange, exchange - hidden) : exchange;
  };
  return compute + left(costs.shard * 2 / 3) + costs.update / R + left(costs.shard / 3);
}

}  // namespace qkv
