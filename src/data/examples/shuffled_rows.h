// The orders in which the rows of a file are visited.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"

namespace qkv {

// Returns 0 … rows − 1, shuffled by (seed, epoch).
std::vector<int64_t> shuffled_rows(int64_t rows, uint64_t seed, int64_t epoch);

// Calls visit(numbers) for 0 … rows − 1 in order, with some thousand consecutive numbers at once.
void for_blocks_of_rows(int64_t rows, FunctionRef<void(std::span<const int64_t> numbers)> visit);

}  // namespace qkv
