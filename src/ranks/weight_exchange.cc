#include "ranks/weight_exchange.h"

#include "ranks/direct_weights.h"
#include "ranks/doubling_weights.h"

namespace qkv {

std::unique_ptr<WeightExchange> make_weight_exchange(Communicator& communicator, const BucketList& list,
                                                     std::span<float> values) {
  if (halves(communicator.size())) return std::make_unique<DoublingWeights>(communicator, list, values);
  return std::make_unique<DirectWeights>(communicator, list, values);
}

}  // namespace qkv
