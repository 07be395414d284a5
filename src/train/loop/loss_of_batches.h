// The loss of a model on dev data, whose batches are dealt out to ranks.
#pragma once

#include <cstdint>

#include "core/function_ref.h"
#include "model/layers/output.h"
#include "ranks/rank_partition.h"

namespace qkv {

// Returns the sum of loss_of(batch), added in the order of the batches. All ranks get the same sum.
Loss loss_of_batches(const RankPartition& partition, int64_t batches, FunctionRef<Loss(int64_t batch)> loss_of);

}  // namespace qkv
