// Numbers that ranks compute in blocks of different sizes.
#pragma once

#include <cstdint>
#include <span>

#include "ranks/rank_partition.h"

namespace qkv {

// Completes the values of all blocks, of which each rank has computed its own: block b is values begins[b] …
// begins[b + 1] − 1. All ranks call it with the same blocks. Each sends the same number of values, as many as the rank
// with most of them has.
void gather_blocks(const RankPartition& partition, std::span<const int64_t> begins, std::span<float> values);

}  // namespace qkv
